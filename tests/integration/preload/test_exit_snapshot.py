"""The last snapshot of a target: final figures after an exit, and the waits after a kill."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from support.targets import PATIENCE_S, StartTarget

from locktop.collector.model import Kind, Lock, Snapshot
from locktop.collector.sources.attach import attach
from locktop.collector.sources.base import Source
from locktop.tui import cli
from locktop.tui.commands import check


def slow_lock(snapshot: Snapshot) -> Lock:
    (lock,) = [lock for lock in snapshot.locks if lock.name == "g_slow_lock"]
    return lock


def scan_until(source: Source, reached: Callable[[Snapshot], bool]) -> Snapshot:
    deadline = time.monotonic() + PATIENCE_S
    while not reached(snapshot := source.scan(resolve=True)):
        assert time.monotonic() < deadline
    return snapshot


def test_the_figures_of_an_exited_target_are_final(start_target: StartTarget) -> None:
    target = start_target("hold_100ms", "1")
    truth = target.truth()
    source = attach(target.pid)
    assert slow_lock(source.scan(resolve=True)).acquisitions == truth["acquisitions"]
    target.go_on()
    target.expect("held")
    scan_until(source, lambda seen: len(slow_lock(seen).waiters) == len(truth["wanters"]))
    target.go_on()
    target.expect("released")
    assert target.finish()[0] == 0
    last = source.scan()
    assert last.ended
    assert slow_lock(last).acquisitions == truth["acquisitions"] + 4, (
        "the last round ended after the last scan of the living process"
    )
    assert slow_lock(last).contended == truth["contended"] + 3
    assert (slow_lock(last).waiters, slow_lock(last).holders) == ((), ())
    assert not any(thread.alive or thread.waiting_for for thread in last.threads)
    assert source.scan() == last
    source.close()


def test_a_killed_target_shows_the_waits_of_its_last_moment(start_target: StartTarget) -> None:
    target = start_target("hold_100ms", "1")
    truth = target.truth()
    wanters = {one["tid"] for one in truth["wanters"]}
    source = attach(target.pid)
    target.go_on()
    target.expect("held")
    before = scan_until(source, lambda seen: len(slow_lock(seen).waiters) == len(wanters))
    target.kill()
    last = source.scan()
    assert last.ended
    assert last.taken_at > before.taken_at
    assert set(slow_lock(last).waiters) == wanters
    assert slow_lock(last).holders == (truth["holder"],)
    threads = {thread.tid: thread for thread in last.threads}
    for tid in wanters:
        wait = threads[tid].waiting_for
        assert wait is not None
        assert (wait.kind, wait.holders, threads[tid].alive) == (
            Kind.MUTEX, (truth["holder"],), False,
        )  # fmt: skip
        assert last.stacks[wait.stack][0].function == "wanter_takes"
        assert threads[tid].name.startswith("wanter-")
    assert [held.lock for held in threads[truth["holder"]].holds] == [slow_lock(last).id]
    source.close()


def longest_wait(snapshot: Snapshot) -> float:
    """Return the longest present wait for the slow lock, in seconds."""
    waiters = slow_lock(snapshot).waiters
    waits = [thread.waiting_for for thread in snapshot.threads if thread.tid in waiters]
    return max(wait.duration_s for wait in waits if wait is not None)


def test_no_time_is_counted_after_the_end(start_target: StartTarget) -> None:
    """A scan may find a target dead long after its end. No wait grows in that time."""
    target = start_target("hold_100ms", "1")
    wanters = len(target.truth()["wanters"])
    source = attach(target.pid)
    began = time.monotonic()
    target.go_on()
    target.expect("held")
    before = scan_until(source, lambda seen: len(slow_lock(seen).waiters) == wanters)
    target.kill()
    at_most = time.monotonic() - began
    # A wait that grew after the end would then be longer than the target could have waited.
    time.sleep(at_most - longest_wait(before) + 0.1)
    last = source.scan()
    assert last.ended
    lock, alive = slow_lock(last), slow_lock(before)
    assert longest_wait(last) <= at_most
    assert lock.wait_max_s <= max(at_most, 1.01 * alive.wait_max_s)
    assert lock.hold_max_s is not None
    assert alive.hold_max_s is not None
    assert lock.hold_max_s <= max(at_most, 1.01 * alive.hold_max_s)
    assert lock.wait_s <= 1.01 * alive.wait_s + wanters * at_most
    assert last.duration_s <= 1.01 * before.duration_s + at_most
    assert lock.rates == alive.rates, "the rates of the last interval of life"
    source.close()


def test_a_target_killed_in_a_deadlock_still_shows_the_deadlock(start_target: StartTarget) -> None:
    target = start_target("ring_of_three")
    target.expect("ready")
    source = attach(target.pid)
    target.go_on()
    tids = target.truth()
    scan_until(source, lambda seen: bool(seen.deadlocks))
    target.kill()
    (deadlock,) = source.scan().deadlocks
    assert {edge.tid for edge in deadlock.cycle} == set(tids.values())
    source.close()


def between_the_scans(monkeypatch: pytest.MonkeyPatch, action: Callable[[], None]) -> None:
    """Call ``action`` between the two scans of `locktop check`."""
    monkeypatch.setattr(check, "time", SimpleNamespace(sleep=lambda _: action()))


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_check_gives_no_verdict_of_a_target_killed_between_its_scans(
    form: list[str],
    start_target: StartTarget,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    target = start_target("nested_locks_one_order")
    target.expect("ready")
    between_the_scans(monkeypatch, target.kill)
    assert cli.main(["check", "-p", str(target.pid), *form]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert f"cannot tell whether there is a deadlock: process {target.pid}" in said.err
    assert "ended during the scans" in said.err


def test_check_reports_a_deadlock_whose_target_was_killed_between_its_scans(
    start_target: StartTarget, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    target = start_target("ring_of_three")
    target.expect("ready")
    target.go_on()
    target.truth()
    with_source = attach(target.pid)
    scan_until(with_source, lambda seen: bool(seen.deadlocks))
    with_source.close()
    between_the_scans(monkeypatch, target.kill)
    assert cli.main(["check", "-p", str(target.pid)]) == 1
    assert "waited for each other when it ended" in capsys.readouterr().out
