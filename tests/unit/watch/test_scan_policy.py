"""When a whole scan is worth its time."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders import records, scenarios

from locktop.collector.model import CONTENTION_KINDS, Kind, Snapshot, ThreadState, Wait
from locktop.collector.sources.base import OngoingWait
from locktop.collector.watch.alerts import AlertKind, Alerts
from locktop.collector.watch.scan_policy import ScanPolicy


def wait(seq: int = 1, kind: Kind = Kind.MUTEX, lock: int = 1, duration_s: float = 9.0) -> Wait:
    idle = kind not in CONTENTION_KINDS
    return Wait(lock, kind, duration_s, (4714,), 1, 0x401100, seq, idle=idle)


def now(
    holds: bool = False,
    seq: int = 1,
    kind: Kind = Kind.MUTEX,
    lock: int = 1,
    duration_s: float = 9.0,
) -> OngoingWait:
    return OngoingWait(lock, kind, duration_s, seq, holds, idle=kind not in CONTENTION_KINDS)


def waiting(**by_name: Wait) -> Snapshot:
    """Threads t1, t2, ... in these waits."""
    threads = tuple(
        records.thread(int(name[1:]), name, ThreadState.WAITING, waiting_for=one)
        for name, one in by_name.items()
    )
    return replace(scenarios.normal(), threads=threads)


class Scans:
    """A scan policy that is queried each half second."""

    def __init__(self, wait_s: float | None = None) -> None:
        self.policy = ScanPolicy(wait_s)
        self.now = 100.0

    def at(self, waits: dict[int, OngoingWait] | None) -> bool:
        self.now += 0.5
        return self.policy.due(waits, self.now)


HOLDING = {1: now(True, duration_s=0.1)}


def test_the_first_scan_is_due_and_then_one_after_some_time() -> None:
    scans = Scans()
    assert scans.at({})
    assert [scans.at({}) for _ in range(20)] == [False] * 19 + [True]
    assert scans.at(None), "only a scan can decide"


def test_a_wait_that_goes_on_while_a_lock_is_held_needs_one_scan() -> None:
    scans = Scans()
    scans.at({})
    assert [scans.at(HOLDING) for _ in range(4)] == [False, True, False, False]
    changing = [{1: now(True, seq, duration_s=0.1)} for seq in range(10, 14)]
    assert not any(scans.at(waits) for waits in changing), "none goes on"


def test_waiters_that_hold_nothing_are_in_no_circle() -> None:
    scans = Scans()
    scans.at({})
    nothing = {2: now(False)}
    assert not any(scans.at(nothing) for _ in range(4))
    # Until one of them takes part: it had no scan yet.
    joins = {1: now(True, kind=Kind.JOIN, duration_s=0.1)}
    assert [scans.at(nothing | joins) for _ in range(3)] == [False, True, False]


def test_a_thread_joined_by_one_that_holds_a_lock_is_waited_for() -> None:
    joins = {1: now(True, kind=Kind.JOIN, duration_s=0.1)}
    scans = Scans()
    scans.at(joins)
    assert [scans.at(joins) for _ in range(2)] == [True, False]
    nothing = {2: now(False)}
    assert [scans.at(joins | nothing) for _ in range(3)] == [False, True, False]


@pytest.mark.parametrize("kind", [Kind.RWLOCK, Kind.JOIN, Kind.ONCE, Kind.BARRIER])
def test_some_waits_keep_others_without_a_lock(kind: Kind) -> None:
    scans = Scans()
    scans.at({})
    waits = {1: now(False, kind=kind)}
    assert [scans.at(waits) for _ in range(3)] == [False, True, False]


def test_a_wait_that_gets_too_long_needs_one_scan() -> None:
    scans = Scans(wait_s=5.0)
    scans.at({})
    short = {2: now(False, duration_s=4.9)}
    assert [scans.at(short) for _ in range(3)] == [False] * 3
    assert [scans.at({2: now(False, duration_s=5.1 + n)}) for n in range(3)] == [
        True,
        False,
        False,
    ]
    idle = {3: now(False, kind=Kind.COND)}
    assert not any(scans.at(idle) for _ in range(3))


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("idle", [False, True])
def test_the_rules_tell_which_waits_count_whatever_their_kind(kind: Kind, idle: bool) -> None:
    found = Alerts(5.0).due(waiting(t1=replace(wait(kind=kind), idle=idle)))
    assert len(found) == (not idle)


def test_what_turns_out_to_be_for_work_is_due_no_more_and_was_not_missed() -> None:
    alerts, idle = Alerts(5.0), replace(wait(), idle=True)
    (alert,) = alerts.due(waiting(t1=wait(), t2=wait()))
    assert not alerts.is_idle(alert, waiting(t1=wait(), t2=idle)), "one of them is held up"
    assert not alerts.is_idle(alert, waiting(t1=idle)), "the other one is over, and was none"
    known = waiting(t1=idle, t2=idle)
    assert alerts.is_idle(alert, known)
    assert alerts.due(known) == []
    assert not alerts.is_pending(AlertKind.WAIT)
    alerts.due(waiting())
    assert alerts.missed[AlertKind.WAIT] == 0


def test_a_long_wait_that_only_names_classify_needs_one_scan_with_names() -> None:
    scans = Scans(wait_s=5.0)
    scans.at({})
    unknown = replace(now(False, kind=Kind.COND), idle=None)
    short = replace(unknown, duration_s=1.0)
    assert not scans.at({1: short})
    assert scans.at({1: unknown})
    assert scans.policy.needs_names
    assert not scans.at({1: unknown})
    # Another wait in the same stack, whose verdict that scan has brought.
    assert not scans.at({1: replace(unknown, idle=True, seq=2)})
    assert scans.at({1: replace(unknown, idle=False, seq=3)})
    assert not scans.policy.needs_names


def test_without_a_time_for_waits_no_names_are_needed() -> None:
    scans = Scans()
    scans.at({})
    assert not scans.at({1: replace(now(False, kind=Kind.COND), idle=None)})
    assert not scans.policy.needs_names
