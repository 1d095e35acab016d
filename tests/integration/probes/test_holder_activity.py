"""The activity of the holder of a contended lock, against the program's own announcement."""

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

from locktop.collector.linux import procfs
from locktop.collector.model import ActivityState, Snapshot, ThreadActivity
from locktop.collector.model.frames import CUT_WHEN_UNWOUND
from locktop.collector.render.documents import snapshot_codec
from locktop.collector.render.text import report
from locktop.collector.sources.attach import attach
from locktop.collector.sources.base import Source
from locktop.collector.symbols.unwind import perf_sample, ptrace_stop
from locktop.collector.symbols.unwind.arch import architecture
from locktop.collector.symbols.unwind.stack_memory import StackCopy

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
def test_a_blocked_holder_is_in_the_system_call_that_it_announced(
    way: str, start_target: StartTarget
) -> None:
    target, about_to = begun(start_target, way)
    with closing(attach(target.pid)) as source:
        first = of_the_lock(source.scan(resolve=True))
        seen = source.scan(resolve=True)
    now = of_the_lock(seen)
    assert first is not None
    assert now is not None
    assert (now.doing, now.what) == (ActivityState.BLOCKED, about_to)
    assert now.call == about_to.partition("(")[0]
    assert 0.0 <= first.duration_s < now.duration_s
    assert first.is_lower_bound, "the call began before the first scan"
    assert f"which is now in {about_to} for " in " ".join(report.render(seen).split())
    functions = [frame.function for frame in seen.stacks[now.stack]]
    assert functions[:2] == [way, "hold"], "the stack of the call"
    (lock,) = (lock for lock in snapshot_codec.document(seen)["locks"] if lock["holder_now"])
    assert lock["holder_now"]["what"] == about_to
    assert lock["holders"] == [now.tid]


@pytest.mark.parametrize("start", ["start_target", "start_unprepared"])
def test_the_activity_is_known_after_the_main_thread_has_ended(
    start: str, request: pytest.FixtureRequest
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may read a process without its main thread")
    target: Target = request.getfixturevalue(start)("holder_activities", "receives", "leaves")
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


def test_one_snapshot_has_the_functions_of_the_holder(start_target: StartTarget) -> None:
    target, _ = begun(start_target, "sleeps")
    seen = tool.snapshot(target.pid)
    lock = tool.lock_named(seen, "g_lock")
    assert tool.functions(seen, lock["holder_now"]["stack"])[:2] == ["sleeps", "hold"]


def functions(snapshot: Snapshot, now: ThreadActivity) -> list[str]:
    return [frame.function for frame in snapshot.stacks.get(now.stack, ())]


def until(
    source: Source, wanted: Callable[[ThreadActivity], bool]
) -> tuple[Snapshot, ThreadActivity]:
    """Scan until the activity of the holder is as wanted: a running thread may have no CPU."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        seen = source.scan(resolve=True)
        now = of_the_lock(seen)
        if now is not None and wanted(now):
            return seen, now
        assert time.monotonic() < deadline, now


@pytest.mark.parametrize("start", ["start_target", "start_unprepared"])
def test_a_running_holder_has_a_fresh_stack(start: str, request: pytest.FixtureRequest) -> None:
    target, _ = begun(request.getfixturevalue(start), "runs")
    with closing(attach(target.pid)) as source:
        seen, now = until(source, lambda now: bool(now.stack))
    assert (now.doing, now.call, now.what, now.stack_age_s) == (ActivityState.RUNNING, "", "", 0.0)
    assert functions(seen, now)[:3] == ["works", "runs", "hold"]
    page = " ".join(report.render(seen).split())
    assert "holds mutex g_lock and is running" in page
    assert " works at holder_activities.c:" in page


@pytest.mark.parametrize("start", ["start_target", "start_unprepared"])
def test_the_stack_of_a_running_holder_is_from_its_time_with_the_lock(
    start: str, request: pytest.FixtureRequest
) -> None:
    """The thread may have released the lock since the scan saw it as the holder."""
    target: Target = request.getfixturevalue(start)("relay_of_one_lock")
    target.expect("ready")
    inside = 0
    with closing(attach(target.pid)) as source:
        deadline = time.monotonic() + PATIENCE_S
        while inside < 8:
            seen = source.scan(resolve=True)
            now = of_the_lock(seen)
            if now is not None and now.stack and not now.stack_age_s:
                assert "works_without_lock" not in functions(seen, now)
                inside += "works_with_lock" in functions(seen, now)  # else in lock() or unlock()
            assert time.monotonic() < deadline


@pytest.mark.parametrize("start", ["start_target", "start_unprepared"])
def test_a_holder_never_has_a_call_from_after_its_release(
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


def test_without_the_right_to_sample_a_running_holder_has_its_last_stack(
    start_unprepared: StartTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The setting kernel.perf_event_paranoid=3 takes the right away."""

    def refused(*_: object) -> dict[int, StackCopy]:
        raise perf_sample.RefusedError("no right (kernel.perf_event_paranoid is 3)")

    monkeypatch.setattr(perf_sample, "copies", refused)
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
        assert not any("perf_event_paranoid" in note for note in seen.notes), "the right is back"
        monkeypatch.setattr(perf_sample, "copies", refused)
    with closing(attach(target.pid, stop_threads=True)) as source:
        seen, now = until(source, lambda now: bool(now.stack))
    assert functions(seen, now)[:2] == ["works", "rests_and_runs"]
    assert not any("perf_event_paranoid" in note for note in seen.notes)


def test_the_error_names_the_missing_right(start_unprepared: StartTarget) -> None:
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


def test_a_user_may_sample_an_own_process() -> None:
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


def test_with_stop_threads_a_stack_is_whole_and_its_thread_stops_once(
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
    assert functions(seen, now) == ["takes_memory", CUT_WHEN_UNWOUND.function]
    with closing(attach(target.pid, stop_threads=True)) as source:
        deadline = time.monotonic() + PATIENCE_S
        # On a busy machine the thread may not stop in time.
        while CUT_WHEN_UNWOUND in seen.stacks.get(now.stack, (CUT_WHEN_UNWOUND,)):
            assert time.monotonic() < deadline
            seen, now = until(source, lambda now: now.doing is ActivityState.BLOCKED)
        assert functions(seen, now)[:2] == ["takes_memory", "hold"]
        while procfs.thread_stat(target.pid, now.tid).state != "S":  # it goes back to its call
            assert time.monotonic() < deadline
        runs = procfs.thread_runs(target.pid, now.tid)
        for _ in range(3):
            seen = source.scan(resolve=True)
            again = of_the_lock(seen)
            assert again is not None
            assert functions(seen, again)[:2] == ["takes_memory", "hold"]
        assert procfs.thread_runs(target.pid, now.tid) == runs, "the thread stopped only once"


def test_a_holder_that_does_not_stop_in_time_has_the_stack_of_its_sleep(
    start_unprepared: StartTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ptrace_stop, "PATIENCE_S", -1.0)  # as while all CPUs are busy
    target = start_unprepared(
        "holder_activities", "takes_memory", flags=("-O2", "-fno-omit-frame-pointer")
    )
    target.line()
    target.expect("ready")
    for _ in range(10):  # now and then the thread stops at once
        with closing(attach(target.pid, stop_threads=True)) as source:
            seen, now = until(source, lambda now: now.doing is ActivityState.BLOCKED)
        assert functions(seen, now)[:1] == ["takes_memory"]


def test_a_stopped_holder_has_activity_stopped(start_target: StartTarget) -> None:
    target, _ = begun(start_target, "sleeps")
    target.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, target.pid, os.WSTOPPED | os.WNOWAIT)
    with closing(attach(target.pid)) as source:
        now = of_the_lock(source.scan(resolve=True))
    assert now is not None
    assert now.doing is ActivityState.STOPPED


def test_a_holder_that_waits_for_another_lock_has_activity_waiting(
    start_target: StartTarget,
) -> None:
    target = start_target("ring_of_three")
    target.expect("ready")
    target.go_on()
    target.line()
    doing: list[ActivityState] = []
    with closing(attach(target.pid)) as source:
        deadline = time.monotonic() + PATIENCE_S
        while len(doing) < 3 and time.monotonic() < deadline:  # until all three threads wait
            locks = source.scan().locks
            doing = [lock.holder_activity.doing for lock in locks if lock.holder_activity]
    assert doing == [ActivityState.WAITING] * 3


def test_without_a_waiter_the_activity_of_a_holder_is_not_read(start_target: StartTarget) -> None:
    target = start_target("mutex_orders", "inversion")
    target.expect("ok")
    with closing(attach(target.pid)) as source:
        assert all(lock.holder_activity is None for lock in source.scan().locks)
