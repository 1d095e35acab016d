"""The situations in which a whole scan is due."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders.waits import ongoing, wait, waiting

from locktop.collector.analysis.alerts import AlertKind, Alerts
from locktop.collector.extensions.watch.scan_policy import ScanPolicy
from locktop.collector.model import Kind
from locktop.collector.sources.base import OngoingWait


class Scans:
    """A scan policy that is queried each half second."""

    def __init__(self, wait_s: float | None = None) -> None:
        self.policy = ScanPolicy(wait_s)
        self.now = 100.0

    def at(self, waits: dict[int, OngoingWait] | None) -> bool:
        self.now += 0.5
        return self.policy.due(waits, self.now)


HOLDING = {1: ongoing(True, duration_s=0.1)}


def test_the_first_scan_is_due_and_then_one_after_some_time() -> None:
    scans = Scans()
    assert scans.at({})
    assert [scans.at({}) for _ in range(20)] == [False] * 19 + [True]
    assert scans.at(None), "only a scan can decide"


def test_a_wait_that_goes_on_while_a_lock_is_held_needs_one_scan() -> None:
    scans = Scans()
    scans.at({})
    assert [scans.at(HOLDING) for _ in range(4)] == [False, True, False, False]
    changing = [{1: ongoing(True, seq, duration_s=0.1)} for seq in range(10, 14)]
    assert not any(scans.at(waits) for waits in changing), "no wait goes on"


def test_waiters_without_locks_need_no_scan() -> None:
    scans = Scans()
    scans.at({})
    nothing = {2: ongoing(False)}
    assert not any(scans.at(nothing) for _ in range(4))
    # A wait that needs its first scan joins.
    joins = {1: ongoing(True, kind=Kind.JOIN, duration_s=0.1)}
    assert [scans.at(nothing | joins) for _ in range(3)] == [False, True, False]


def test_a_join_by_a_lock_holder_needs_a_scan() -> None:
    joins = {1: ongoing(True, kind=Kind.JOIN, duration_s=0.1)}
    scans = Scans()
    scans.at(joins)
    assert [scans.at(joins) for _ in range(2)] == [True, False]
    nothing = {2: ongoing(False)}
    assert [scans.at(joins | nothing) for _ in range(3)] == [False, True, False]


@pytest.mark.parametrize("kind", [Kind.RWLOCK, Kind.JOIN, Kind.ONCE, Kind.BARRIER])
def test_waits_that_block_other_threads_without_a_lock_need_a_scan(kind: Kind) -> None:
    scans = Scans()
    scans.at({})
    waits = {1: ongoing(False, kind=kind)}
    assert [scans.at(waits) for _ in range(3)] == [False, True, False]


def test_a_wait_that_gets_too_long_needs_one_scan() -> None:
    scans = Scans(wait_s=5.0)
    scans.at({})
    short = {2: ongoing(False, duration_s=4.9)}
    assert [scans.at(short) for _ in range(3)] == [False] * 3
    assert [scans.at({2: ongoing(False, duration_s=5.1 + n)}) for n in range(3)] == [
        True,
        False,
        False,
    ]
    idle = {3: ongoing(False, kind=Kind.COND)}
    assert not any(scans.at(idle) for _ in range(3))


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("idle", [False, True])
def test_the_idle_rules_decide_which_waits_count(kind: Kind, idle: bool) -> None:
    found = Alerts(5.0).due(waiting(t1=replace(wait(kind=kind), idle=idle)))
    assert len(found) == (not idle)


def test_a_wait_found_idle_is_no_longer_due_and_not_missed() -> None:
    alerts, idle = Alerts(5.0), replace(wait(), idle=True)
    (alert,) = alerts.due(waiting(t1=wait(), t2=wait()))
    assert not alerts.is_idle(alert, waiting(t1=wait(), t2=idle)), "one of the waits is contended"
    assert not alerts.is_idle(alert, waiting(t1=idle)), "the other wait is over, and was idle"
    known = waiting(t1=idle, t2=idle)
    assert alerts.is_idle(alert, known)
    assert alerts.due(known) == []
    assert not alerts.is_pending(AlertKind.WAIT)
    alerts.due(waiting())
    assert alerts.missed[AlertKind.WAIT] == 0


def test_a_long_wait_that_only_names_classify_needs_one_scan_with_names() -> None:
    scans = Scans(wait_s=5.0)
    scans.at({})
    unknown = replace(ongoing(False, kind=Kind.COND), idle=None)
    short = replace(unknown, duration_s=1.0)
    assert not scans.at({1: short})
    assert scans.at({1: unknown})
    assert scans.policy.needs_names
    assert not scans.at({1: unknown})
    # Another wait in the same stack: the scan before brought the verdict.
    assert not scans.at({1: replace(unknown, idle=True, seq=2)})
    assert scans.at({1: replace(unknown, idle=False, seq=3)})
    assert not scans.policy.needs_names


def test_without_a_time_for_waits_no_names_are_needed() -> None:
    scans = Scans()
    scans.at({})
    assert not scans.at({1: replace(ongoing(False, kind=Kind.COND), idle=None)})
    assert not scans.policy.needs_names
