"""What the holder of a contended lock does now, as it says itself before it does it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import closing

import pytest
from support import tool
from support.rights import NOBODY, as_nobody
from support.targets import PATIENCE_S, StartTarget, Target

from locktop.collector.export import snapshot_codec
from locktop.collector.export.text import report
from locktop.collector.linux import procfs
from locktop.collector.model import ActivityState, Snapshot, ThreadActivity
from locktop.collector.sources.attach import attach
from locktop.collector.sources.base import Source
from locktop.collector.sources.probes.native_stacks import CUT
from locktop.collector.unwind import perf_sample
from locktop.collector.unwind.arch import architecture
from locktop.collector.unwind.stack_memory import StackCopy

BLOCKED = (
    "reads_a_pipe",
    "writes_a_file",
    "accepts",
    "receives",
    "listens_at_a_path",
    "polls",
    "sleeps",
    "opens",
    "awaits_a_child",
)


def of_the_lock(snapshot: Snapshot) -> ThreadActivity | None:
    return next((lock.holder_activity for lock in snapshot.locks if lock.name == "g_lock"), None)


def begun(start_target: StartTarget, way: str) -> tuple[Target, str]:
    target = start_target("holder_activities", way)
    about_to = target.line()
    target.expect("ready")
    return target, about_to


@pytest.mark.parametrize("way", BLOCKED)
def test_a_blocked_holder_is_in_the_call_that_it_made(way: str, start_target: StartTarget) -> None:
    target, about_to = begun(start_target, way)
    with closing(attach(target.pid)) as source:
        first = of_the_lock(source.scan(resolve=True))
        seen = source.scan(resolve=True)
    now = of_the_lock(seen)
    assert first is not None
    assert now is not None
    assert (now.doing, now.what) == (ActivityState.BLOCKED, about_to)
    assert now.call == about_to.partition("(")[0]
    assert first.duration_s == 0.0 < now.duration_s, "only what was seen counts"
    assert f"which is now in {about_to} for " in " ".join(report.render(seen).split())
    functions = [frame.function for frame in seen.stacks[now.stack]]
    assert functions[:2] == [way, "hold"], "where it made the call"
    (lock,) = (lock for lock in snapshot_codec.document(seen)["locks"] if lock["holder_now"])
    assert lock["holder_now"]["what"] == about_to
    assert lock["holders"] == [now.tid]


@pytest.mark.parametrize("how", ["start_target", "start_unprepared"])
def test_where_the_first_thread_has_ended(how: str, request: pytest.FixtureRequest) -> None:
    start: StartTarget = request.getfixturevalue(how)
    target = start("holder_activities", "receives", "leaves")
    about_to = target.line()
    target.expect("ready")
    deadline = time.monotonic() + PATIENCE_S
    while procfs.stat(target.pid).state != "Z":
        assert time.monotonic() < deadline
    with closing(attach(target.pid)) as source:
        while (now := of_the_lock(seen := source.scan(resolve=True))) is None:
            assert time.monotonic() < deadline
    assert (now.doing, now.what) == (ActivityState.BLOCKED, about_to)
    assert functions(seen, now)[:2] == ["receives", "hold"]
    (wait,) = (thread.waiting_for for thread in seen.threads if thread.waiting_for)
    assert [frame.function for frame in seen.stacks[wait.stack]][:1] == ["want"]
    assert seen.process.exe == str(target.process.args[0])  # type: ignore[index]
    assert seen.process.rss_bytes > 0


def test_one_scan_knows_the_names(start_target: StartTarget) -> None:
    target, _ = begun(start_target, "sleeps")
    seen = tool.snapshot(target.pid)
    lock = tool.lock_named(seen, "g_lock")
    assert tool.functions(seen, lock["holder_now"]["stack"])[:2] == ["sleeps", "hold"]


def functions(snapshot: Snapshot, now: ThreadActivity) -> list[str]:
    return [frame.function for frame in snapshot.stacks.get(now.stack, ())]


def until(
    source: Source, wanted: Callable[[ThreadActivity], bool]
) -> tuple[Snapshot, ThreadActivity]:
    """Look until what the holder does is as wanted: one that runs is not always on a CPU."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        seen = source.scan(resolve=True)
        now = of_the_lock(seen)
        if now is not None and wanted(now):
            return seen, now
        assert time.monotonic() < deadline, now


@pytest.mark.parametrize("start", ["start_target", "start_unprepared"])
def test_of_one_that_runs_it_is_seen_where(start: str, request: pytest.FixtureRequest) -> None:
    target, _ = begun(request.getfixturevalue(start), "runs")
    with closing(attach(target.pid)) as source:
        seen, now = until(source, lambda now: bool(now.stack))
    assert (now.doing, now.call, now.what, now.stack_age_s) == (ActivityState.RUNNING, "", "", 0.0)
    assert functions(seen, now)[:3] == ["works", "runs", "hold"]
    page = " ".join(report.render(seen).split())
    assert "has mutex g_lock and is running" in page
    assert " works at holder_activities.c:" in page


@pytest.mark.parametrize("start", ["start_target", "start_unprepared"])
def test_where_one_runs_is_told_only_if_it_has_the_lock_there(
    start: str, request: pytest.FixtureRequest
) -> None:
    """It may have given it back since it was seen to have it."""
    target: Target = request.getfixturevalue(start)("relay_of_one_lock")
    target.expect("ready")
    told: list[bool] = []
    with closing(attach(target.pid)) as source:
        deadline = time.monotonic() + PATIENCE_S
        while len(told) < 15:
            seen = source.scan(resolve=True)
            now = of_the_lock(seen)
            if now is not None and now.stack and not now.stack_age_s:
                assert "outside" not in functions(seen, now)
                told.append("inside" in functions(seen, now))  # else on the way in or out
            assert time.monotonic() < deadline
    assert sum(told) > len(told) / 2


@pytest.mark.parametrize("start", ["start_target", "start_unprepared"])
def test_a_call_is_told_only_of_one_that_has_the_lock_in_it(
    start: str, request: pytest.FixtureRequest
) -> None:
    target: Target = request.getfixturevalue(start)("relay_of_one_lock", "rests")
    target.expect("ready")
    seen: list[ThreadActivity] = []
    with closing(attach(target.pid)) as source:
        while len(seen) < 40:
            now = of_the_lock(source.scan())
            seen += [now] if now is not None else []
    assert not [now for now in seen if now.call == "clock_nanosleep"]


def test_where_nobody_may_sample_it_is_said_where_it_was_seen_asleep(
    start_unprepared: StartTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where kernel.perf_event_paranoid is 3."""

    def refused(tid: int, registers: int) -> int:
        raise perf_sample.RefusedError("no right (kernel.perf_event_paranoid is 3)")

    monkeypatch.setattr(perf_sample, "open_sampler", refused)
    target, _ = begun(start_unprepared, "rests_and_runs")
    with closing(attach(target.pid)) as source:
        until(source, lambda now: now.doing is ActivityState.BLOCKED)
        target.go_on()
        seen, now = until(source, lambda now: now.doing is ActivityState.RUNNING)
        assert now.stack_age_s > 0.0
        assert functions(seen, now)[:2] == ["rests", "rests_and_runs"]
        assert any("perf_event_paranoid is 3" in note for note in seen.notes)
        monkeypatch.undo()
        seen, now = until(source, lambda now: bool(now.stack and not now.stack_age_s))
        assert functions(seen, now)[:2] == ["works", "rests_and_runs"]
        assert not any("perf_event_paranoid" in note for note in seen.notes), "it was let"
        monkeypatch.setattr(perf_sample, "open_sampler", refused)
    with closing(attach(target.pid, stop_threads=True)) as source:
        seen, now = until(source, lambda now: bool(now.stack))
    assert functions(seen, now)[:2] == ["works", "rests_and_runs"]
    assert not any("perf_event_paranoid" in note for note in seen.notes)


def test_who_has_no_right_is_told_which(start_unprepared: StartTarget) -> None:
    target, _ = begun(start_unprepared, "runs")
    processor = architecture()
    assert processor is not None

    def refusal() -> str:
        try:
            perf_sample.copies([target.pid], processor, 0.0)
        except perf_sample.RefusedError as error:
            return str(error)
        return ""

    refused = as_nobody(refusal)
    assert os.geteuid() != 0 or "no right" in refused


def test_a_user_without_rights_may_sample_what_is_their_own() -> None:
    processor = architecture()
    assert processor is not None
    own = NOBODY if os.geteuid() == 0 else None
    child = subprocess.Popen(["sh", "-c", "while :; do :; done"], user=own, group=own)

    def sampled() -> tuple[str, bool]:
        try:
            copies: dict[int, StackCopy] = {}
            deadline = time.monotonic() + PATIENCE_S
            while not copies and time.monotonic() < deadline:
                copies = perf_sample.copies([child.pid], processor, 0.1)
            copy = copies[child.pid]
            return "", bool(copy.registers[processor.pc] and copy.stack)
        except perf_sample.RefusedError as error:
            return str(error), False

    try:
        refused, found = as_nobody(sampled)
    finally:
        child.kill()
        child.wait()
    if refused:
        pytest.skip(refused)
    assert found


def test_with_stop_threads_a_stack_is_whole_and_a_thread_stopped_once(
    start_unprepared: StartTarget,
) -> None:
    target = start_unprepared(
        "holder_activities", "takes_memory", flags=("-O2", "-fno-omit-frame-pointer")
    )
    target.line()
    target.expect("ready")
    with closing(attach(target.pid)) as source:
        seen = source.scan(resolve=True)
        now = of_the_lock(seen)
    assert now is not None
    assert functions(seen, now) == ["takes_memory", CUT.function]
    with closing(attach(target.pid, stop_threads=True)) as source:
        seen = source.scan(resolve=True)
        now = of_the_lock(seen)
        assert now is not None
        assert functions(seen, now)[:2] == ["takes_memory", "hold"]
        assert CUT not in seen.stacks[now.stack]
        runs = procfs.thread_runs(target.pid, now.tid)
        for _ in range(3):
            seen = source.scan(resolve=True)
            again = of_the_lock(seen)
            assert again is not None
            assert functions(seen, again)[:2] == ["takes_memory", "hold"]
        assert procfs.thread_runs(target.pid, now.tid) == runs, "it slept on"


def test_a_stopped_one_is_stopped(start_target: StartTarget) -> None:
    target, _ = begun(start_target, "sleeps")
    target.process.send_signal(signal.SIGSTOP)
    with closing(attach(target.pid)) as source:
        now = of_the_lock(source.scan(resolve=True))
    assert now is not None
    assert now.doing is ActivityState.STOPPED


def test_one_that_waits_for_another_lock_waits(start_target: StartTarget) -> None:
    target = start_target("ring_of_three")
    target.expect("ready")
    target.go_on()
    target.line()
    doing: list[ActivityState] = []
    with closing(attach(target.pid)) as source:
        deadline = time.monotonic() + PATIENCE_S
        while len(doing) < 3 and time.monotonic() < deadline:  # until all of them wait
            locks = source.scan().locks
            doing = [lock.holder_activity.doing for lock in locks if lock.holder_activity]
    assert doing == [ActivityState.WAITING] * 3


def test_where_nobody_waits_nobody_asks(start_target: StartTarget) -> None:
    target = start_target("mutex_orders", "inversion")
    target.expect("ok")
    with closing(attach(target.pid)) as source:
        assert all(lock.holder_activity is None for lock in source.scan().locks)
