"""Locks of threads that ended long ago: the verdict stays, with the library and without."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import closing

import pytest
from support.targets import PATIENCE_S, StartTarget, Target

from locktop.collector.model import MisuseKind, Snapshot
from locktop.collector.sources.attach import attach

#: Certain or not, and the edges: the waiting thread, the reason, the ended thread, by script.
Verdict = list[tuple[bool, set[tuple[int, str, int]]]]

#: 400 threads come and go after the end of the owner.
_LONG_AGO = "ended 1, churn, churn, meet 1, stay"
#: How the owner takes the lock, and how the waiter wants it.
WAYS = {
    "mutex": ("lock a", "lock a"),
    "writer": ("write r", "write r"),
    "writer and reader": ("write r", "read r"),
    "reader": ("read r", "write r"),
    "spin": ("spin s", "spin s"),
}
#: A sampled process shows no waits for spin locks, and no reader's id.
SAMPLED = {"mutex", "writer", "writer and reader"}
_SCANS = 20
#: In some of them a scan comes while the threads end.
_KILLS = 8


def verdict(seen: Snapshot, tids: list[int]) -> Verdict:
    number = {tid: number for number, tid in enumerate(tids)}
    return [
        (found.certain, {(number[e.tid], str(e.reason), number[e.held_by]) for e in found.cycle})
        for found in seen.deadlocks
    ]


def kept(seen: Snapshot, tids: list[int]) -> list[tuple[int, int]]:
    """Return the threads that are named as having ended with a lock, each with the count."""
    return [
        (tids.index(one.tid), one.count)
        for one in seen.misuses
        if one.kind is MisuseKind.KEPT_AT_END
    ]


def scan_once(pid: int, resolve: bool = False) -> Snapshot:
    with closing(attach(pid)) as source:
        return source.scan(resolve)


def scan_until(pid: int, is_so: Callable[[Snapshot], bool]) -> Snapshot:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so(seen := scan_once(pid)):
        assert time.monotonic() < deadline, seen
    return seen


def waits(tid: int) -> Callable[[Snapshot], bool]:
    def is_so(seen: Snapshot) -> bool:
        return any(thread.tid == tid and thread.waiting_for for thread in seen.threads)

    return is_so


def is_asleep(pid: int, tid: int) -> bool:
    with open(f"/proc/{pid}/task/{tid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] == "S"


def frozen(target: Target, waiters: tuple[int, ...]) -> list[int]:
    """Wait until the owner has ended and all other threads sleep for good; return all tids."""
    tids: list[int] = target.truth()["tids"]
    target.expect("x")
    deadline = time.monotonic() + PATIENCE_S
    while not all(is_asleep(target.pid, tids[number]) for number in waiters):
        assert time.monotonic() < deadline
    return tids


@pytest.mark.parametrize("way", WAYS)
def test_the_list_of_an_ended_owner_stays(way: str, start_target: StartTarget) -> None:
    takes, wants = WAYS[way]
    target = start_target("scripted_threads", _LONG_AGO, f"{takes}, exit", f"meet 1, {wants}")
    tids = target.truth()["tids"]
    seen = scan_until(target.pid, waits(tids[2]))
    assert verdict(seen, tids) == [(True, {(2, "abandoned", 1)})]
    assert kept(seen, tids) == [(1, 1)]


@pytest.mark.parametrize(
    ("takes", "releases", "wants"),
    [("lock a", "unlock a, lock a", "lock a"), ("read r", "release r, read r", "write r"),
     ("spin s", "unspin s, spin s", "spin s")],
)  # fmt: skip
def test_a_lock_that_another_thread_released_and_took_is_not_abandoned(
    takes: str, releases: str, wants: str, start_target: StartTarget
) -> None:
    main = f"ended 1, churn, churn, {releases}, meet 1, stay"
    target = start_target("scripted_threads", main, f"{takes}, exit", f"meet 1, {wants}")
    tids = target.truth()["tids"]
    assert verdict(scan_until(target.pid, waits(tids[2])), tids) == []


def test_each_ended_reader_is_named(start_target: StartTarget) -> None:
    target = start_target(
        "scripted_threads", "ended 1, ended 2, churn, churn, meet 1, stay",
        "read r, exit", "read r, exit", "meet 1, write r",
    )  # fmt: skip
    tids = target.truth()["tids"]
    seen = scan_until(target.pid, waits(tids[3]))
    assert sorted(map(str, verdict(seen, tids))) == sorted(map(str, [
        (True, {(3, "abandoned", 1)}), (True, {(3, "abandoned", 2)}),
    ]))  # fmt: skip
    assert [count for _, count in kept(seen, tids)] == [2]


def test_a_kept_lock_is_reported_at_the_next_scan(start_target: StartTarget) -> None:
    """Also beside a thread that kept the same lock, and that the library noted before."""
    target = start_target(
        "scripted_threads", "ended 1, ask x, churn, churn, meet 1, ended 2, ask y",
        "read r, exit", "meet 1, read r, exit",
    )  # fmt: skip
    tids = target.truth()["tids"]
    target.expect("x")
    seen = scan_once(target.pid, resolve=True)
    assert kept(seen, tids) == [(1, 1)]
    (stack,) = {one.stack for one in seen.misuses}
    assert [frame.function for frame in seen.stacks[stack]] == ["step_read"]
    target.go_on()
    target.expect("y")
    assert kept(scan_once(target.pid), tids) == [(1, 2)]


def test_a_lock_that_the_owner_released_is_not_reported(start_target: StartTarget) -> None:
    target = start_target(
        "scripted_threads", "ended 1, ask x, churn, churn, ask y",
        "lock a, read r, spin s, unspin s, release r, unlock a, exit",
    )  # fmt: skip
    target.truth()
    for said in ("x", "y"):
        target.expect(said)
        assert scan_once(target.pid).misuses == ()
        target.go_on()


@pytest.mark.parametrize("prepared", [True, False], ids=["library", "sampled"])
@pytest.mark.parametrize("way", ["mutex", "writer", "reader", "crossed"])
def test_the_verdict_on_a_frozen_process_does_not_change(
    way: str, prepared: bool, start_target: StartTarget, start_unprepared: StartTarget
) -> None:
    start = start_target if prepared else start_unprepared
    if way == "crossed":
        target = start(
            "scripted_threads", "after 1, after 2, ask x",
            "lock a, meet 1, lock b", "lock b, meet 1, lock a",
        )  # fmt: skip
        tids, expected = frozen(target, (1, 2)), [(True, {(1, "held", 2), (2, "held", 1)})]
    else:
        takes, wants = WAYS[way]
        target = start(
            "scripted_threads", "ended 1, churn, churn, meet 1, after 2, ask x",
            f"{takes}, exit", f"meet 1, {wants}",
        )  # fmt: skip
        tids, expected = frozen(target, (2,)), [(True, {(2, "abandoned", 1)})]
        if not prepared and way not in SAMPLED:
            expected = []
    with closing(attach(target.pid)) as source:
        found = [verdict(source.scan(), tids) for _ in range(_SCANS)]
    found += [verdict(scan_once(target.pid), tids) for _ in range(_SCANS // 5)]
    assert found == [expected] * len(found)


@pytest.mark.parametrize("start", ["start_target", "start_unprepared"])
def test_the_threads_of_a_killed_process_leave_no_finding_behind(
    start: str, request: pytest.FixtureRequest
) -> None:
    """They end one after the other: the holders of locks may end before the waiters."""
    for _ in range(_KILLS):
        target: Target = request.getfixturevalue(start)("six_pools", "3")
        target.expect("ready")
        with closing(attach(target.pid)) as source:
            source.scan()
            target.process.send_signal(signal.SIGKILL)
            seen = None
            while seen is None or not seen.ended:
                seen = source.scan()
                assert (seen.deadlocks, seen.misuses) == ((), ())
