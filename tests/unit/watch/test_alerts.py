"""What is worth an alarm, and once; when a whole look is worth its time."""

from __future__ import annotations

import dataclasses

import pytest
from msgspec.structs import replace
from unit.builders import scenarios as pictures

from locktop.collector.model import CONTENTION_KINDS, Kind, Snapshot, ThreadState, Wait
from locktop.collector.sources.base import WaitNow
from locktop.collector.sources.preload.idle_cache import IdleCache
from locktop.collector.sources.probes.python_stacks import FIRST_ID
from locktop.collector.watch import alert_line
from locktop.collector.watch.alerts import Alert, AlertKind, Alerts
from locktop.collector.watch.rate_limit import RateLimit
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
) -> WaitNow:
    return WaitNow(lock, kind, duration_s, seq, holds, idle=kind not in CONTENTION_KINDS)


def waiting(**by_name: Wait) -> Snapshot:
    """Threads t1, t2, ... in these waits."""
    threads = tuple(
        pictures.thread(int(name[1:]), name, ThreadState.WAITING, waiting_for=one)
        for name, one in by_name.items()
    )
    return replace(pictures.normal(), threads=threads)


def test_a_deadlock_is_due_until_it_is_told_and_then_never() -> None:
    alerts, ring = Alerts(None), pictures.deadlock()
    (alert,) = alerts.due(ring)
    assert (alert.kind, alert.tid) == (AlertKind.DEADLOCK, 4732), "which waits longest"
    assert alerts.due(ring) == [alert]
    assert alerts.is_pending(AlertKind.DEADLOCK)
    alerts.told(alert)
    assert alerts.due(ring) == []
    assert not alerts.is_pending(AlertKind.DEADLOCK)
    # Of the same knot another circle may be seen: one thread that was told is enough.
    (whole,) = ring.deadlocks
    other = replace(whole, cycle=(replace(whole.cycle[0], held_by=4730),))
    assert alerts.due(replace(ring, deadlocks=(other,))) == []
    assert alerts.due(pictures.normal()) == []
    assert alerts.due(ring) == [alert], "all of it was over: this is another one"
    assert alerts.missed[AlertKind.DEADLOCK] == 0


def test_a_possible_deadlock_is_no_alarm() -> None:
    ring = pictures.deadlock()
    doubted = replace(ring.deadlocks[0], certain=False, doubt="who knows")
    assert Alerts(None).due(replace(ring, deadlocks=(doubted,))) == []


@pytest.mark.parametrize("kind", list(Kind))
def test_waits_for_what_somebody_holds_count_and_no_others(kind: Kind) -> None:
    found = Alerts(5.0).due(waiting(t1=wait(kind=kind)))
    assert len(found) == (kind in CONTENTION_KINDS)
    assert Alerts(None).due(waiting(t1=wait(kind=kind))) == []
    assert Alerts(9.5).due(waiting(t1=wait(kind=kind))) == []


def test_all_long_waits_for_a_lock_are_one_alarm_and_each_wait_is_told_once() -> None:
    alerts = Alerts(5.0)
    two = waiting(
        t1=wait(duration_s=6.0), t2=wait(duration_s=7.0), t3=wait(duration_s=1.0), t4=wait(lock=2)
    )
    first, second = sorted(alerts.due(two), key=lambda alert: alert.lock)
    assert (first.lock, first.tid, len(first.marks)) == (1, 2, 2)
    assert (second.lock, second.tid) == (2, 4)
    alerts.told(first)
    assert alerts.due(two) == [second]
    alerts.told(second)
    # The third one's wait gets long; the first one's is another one by now.
    later = waiting(
        t1=wait(seq=3, duration_s=8.0), t2=wait(duration_s=9.0), t3=wait(duration_s=8.5)
    )
    (third,) = alerts.due(later)
    assert (third.tid, len(third.marks)) == (3, 2)


def test_what_is_over_before_it_was_told_is_counted() -> None:
    alerts = Alerts(5.0)
    alerts.due(waiting(t1=wait(), t2=wait()))
    alerts.due(waiting(t1=wait(seq=2)))
    assert alerts.missed[AlertKind.WAIT] == 2
    alerts.give_up()
    assert alerts.missed[AlertKind.WAIT] == 3
    alerts.due(pictures.deadlock())
    alerts.give_up()
    assert alerts.missed[AlertKind.DEADLOCK] == 1, "one deadlock of three threads"


def test_the_line_names_thread_lock_holder_and_place() -> None:
    snapshot = pictures.normal()
    (alert, *_) = sorted(Alerts(0.1).due(snapshot), key=lambda alert: alert.lock)
    assert alert_line.line(alert, snapshot) == (
        "wait: worker-0 (4712) of store 4711 has waited 234 ms for mutex g_cache_lock,"
        " held by worker-2 (4714), in cache_get at /src/store/cache.c:42"
    )
    over = dataclasses.replace(alert, marks=frozenset({(4712, 99, 1), (1, 2, 3)}))
    assert alert_line.line(over, snapshot).endswith(", which is over; so has 1 more")
    gone = Alert(AlertKind.WAIT, 1, 999, 1.0, frozenset({(1, 1, 999)}))
    assert "thread 1 of store 4711 has waited 1.00 s for lock 999" in alert_line.line(
        gone, snapshot
    )
    (deadlock,) = Alerts(None).due(pictures.deadlock())
    assert alert_line.line(deadlock, pictures.deadlock()).startswith("deadlock: 3 threads of store")


def test_a_rate_counts_in_any_stretch_of_time() -> None:
    limit = RateLimit(2, 10.0)
    assert [limit.allows(at) for at in (0.0, 6.0, 9.0, 10.0, 15.0, 16.0)] == [
        True,
        True,
        False,
        True,
        False,
        True,
    ]
    assert not limit.has_room(19.0)
    assert limit.has_room(20.0)


class Looks:
    """LookOrNot, asked each half second."""

    def __init__(self, wait_s: float | None = None) -> None:
        self.asked = ScanPolicy(wait_s)
        self.now = 100.0

    def at(self, waits: dict[int, WaitNow] | None) -> bool:
        self.now += 0.5
        return self.asked.due(waits, self.now)


HOLDING = {1: now(True, duration_s=0.1)}


def test_it_looks_first_and_then_after_some_time_whatever_happens() -> None:
    scans = Looks()
    assert scans.at({})
    assert [scans.at({}) for _ in range(20)] == [False] * 19 + [True]
    assert scans.at(None), "only a look can tell"


def test_a_wait_that_goes_on_while_something_is_held_is_worth_one_look() -> None:
    scans = Looks()
    scans.at({})
    assert [scans.at(HOLDING) for _ in range(4)] == [False, True, False, False]
    changing = [{1: now(True, seq, duration_s=0.1)} for seq in range(10, 14)]
    assert not any(scans.at(waits) for waits in changing), "none goes on"


def test_waiters_that_hold_nothing_are_in_no_circle() -> None:
    scans = Looks()
    scans.at({})
    nothing = {2: now(False)}
    assert not any(scans.at(nothing) for _ in range(4))
    # Until one of them takes part: it was left aside, not looked at.
    joins = {1: now(True, kind=Kind.JOIN, duration_s=0.1)}
    assert [scans.at(nothing | joins) for _ in range(3)] == [False, True, False]


def test_a_thread_joined_by_one_that_holds_a_lock_is_waited_for() -> None:
    joins = {1: now(True, kind=Kind.JOIN, duration_s=0.1)}
    scans = Looks()
    scans.at(joins)
    assert [scans.at(joins) for _ in range(2)] == [True, False]
    nothing = {2: now(False)}
    assert [scans.at(joins | nothing) for _ in range(3)] == [False, True, False]


@pytest.mark.parametrize("kind", [Kind.RWLOCK, Kind.JOIN, Kind.ONCE, Kind.BARRIER])
def test_some_waits_keep_others_without_a_lock(kind: Kind) -> None:
    scans = Looks()
    scans.at({})
    waits = {1: now(False, kind=kind)}
    assert [scans.at(waits) for _ in range(3)] == [False, True, False]


def test_a_wait_that_gets_too_long_is_worth_a_look_once() -> None:
    scans = Looks(wait_s=5.0)
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


def test_a_long_wait_that_only_names_tell_is_worth_one_look_with_them() -> None:
    scans = Looks(wait_s=5.0)
    scans.at({})
    unknown = dataclasses.replace(now(False, kind=Kind.COND), idle=None)
    short = dataclasses.replace(unknown, duration_s=1.0)
    assert not scans.at({1: short})
    assert scans.at({1: unknown})
    assert scans.asked.needs_names
    assert not scans.at({1: unknown})
    # Another one at the same place, whose verdict that look has brought.
    assert not scans.at({1: dataclasses.replace(unknown, idle=True, seq=2)})
    assert scans.at({1: dataclasses.replace(unknown, idle=False, seq=3)})
    assert not scans.asked.needs_names


def test_without_a_time_for_waits_no_names_are_needed() -> None:
    scans = Looks()
    scans.at({})
    assert not scans.at({1: dataclasses.replace(now(False, kind=Kind.COND), idle=None)})
    assert not scans.asked.needs_names


def test_verdicts_are_kept_by_lock_and_place_and_follow_later_looks() -> None:
    idle_cache, idle = IdleCache(), replace(wait(kind=Kind.SEM), idle=True)
    place = (idle.lock, idle.stack, idle.site)
    idle_cache.learn(waiting(t1=idle), named=False)
    assert idle_cache.idle(*place) is None, "its names were not known"
    idle_cache.learn(waiting(t1=idle), named=True)
    assert idle_cache.idle(*place) is True
    assert idle_cache.idle(2, *place[1:]) is None
    held = replace(idle, idle=False)
    idle_cache.learn(waiting(t1=held), named=False)
    assert idle_cache.idle(*place) is False
    idle_cache.learn(waiting(t1=held, t2=idle), named=True)
    assert idle_cache.idle(*place) is None, "something else than the place tells them apart"


def test_no_verdict_is_kept_of_a_deadlock_and_of_what_python_ran() -> None:
    ring, idle_cache = pictures.deadlock(), IdleCache()
    idle_cache.learn(ring, named=True)
    stuck = {edge.tid for edge in ring.deadlocks[0].cycle}
    waits = [(one.tid, one.waiting_for) for one in ring.threads if one.waiting_for]
    known = {
        tid for tid, one in waits if idle_cache.idle(one.lock, one.stack, one.site) is not None
    }
    assert known
    assert not known & stuck
    merged = replace(wait(), stack=FIRST_ID)
    idle_cache.learn(waiting(t1=merged), named=True)
    assert idle_cache.idle(merged.lock, merged.stack, merged.site) is None
