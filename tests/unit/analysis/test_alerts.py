"""Waits and deadlocks that are alerts, and the line of an alert."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders import scenarios
from unit.builders.waits import wait, waiting

from locktop.collector.analysis.alerts import Alert, AlertKind, Alerts
from locktop.collector.extensions.watch import alert_line
from locktop.collector.model import CONTENTION_KINDS, Kind


def test_a_deadlock_is_due_until_it_is_reported_and_then_never() -> None:
    alerts, ring = Alerts(None), scenarios.deadlock()
    (alert,) = alerts.due(ring)
    assert (alert.kind, alert.tid) == (AlertKind.DEADLOCK, 4732), "the thread with the longest wait"
    assert alerts.due(ring) == [alert]
    assert alerts.is_pending(AlertKind.DEADLOCK)
    alerts.mark_reported(alert)
    assert alerts.due(ring) == []
    assert not alerts.is_pending(AlertKind.DEADLOCK)
    # Another cycle of the same component may be found: one reported thread is enough.
    (whole,) = ring.deadlocks
    other = replace(whole, cycle=(replace(whole.cycle[0], held_by=4730),))
    assert alerts.due(replace(ring, deadlocks=(other,))) == []
    assert alerts.due(scenarios.normal()) == []
    assert alerts.due(ring) == [alert], "the first deadlock was over: this is another deadlock"
    assert alerts.missed[AlertKind.DEADLOCK] == 0


def test_a_possible_deadlock_is_no_alert() -> None:
    ring = scenarios.deadlock()
    doubted = replace(ring.deadlocks[0], certain=False, doubt="who knows")
    assert Alerts(None).due(replace(ring, deadlocks=(doubted,))) == []


@pytest.mark.parametrize("kind", list(Kind))
def test_only_waits_for_held_objects_are_alerts(kind: Kind) -> None:
    found = Alerts(5.0).due(waiting(t1=wait(kind=kind)))
    assert len(found) == (kind in CONTENTION_KINDS)
    assert Alerts(None).due(waiting(t1=wait(kind=kind))) == []
    assert Alerts(9.5).due(waiting(t1=wait(kind=kind))) == []


def test_all_long_waits_for_a_lock_are_one_alert_and_each_is_reported_once() -> None:
    alerts = Alerts(5.0)
    two = waiting(
        t1=wait(duration_s=6.0), t2=wait(duration_s=7.0), t3=wait(duration_s=1.0), t4=wait(lock=2)
    )
    first, second = sorted(alerts.due(two), key=lambda alert: alert.lock)
    assert (first.lock, first.tid, len(first.waits)) == (1, 2, 2)
    assert (second.lock, second.tid) == (2, 4)
    alerts.mark_reported(first)
    assert alerts.due(two) == [second]
    alerts.mark_reported(second)
    # The wait of the third thread gets long; the first thread has another wait by now.
    later = waiting(
        t1=wait(seq=3, duration_s=8.0), t2=wait(duration_s=9.0), t3=wait(duration_s=8.5)
    )
    (third,) = alerts.due(later)
    assert (third.tid, len(third.waits)) == (3, 2)


def test_an_alert_that_ends_before_it_is_reported_is_counted() -> None:
    alerts = Alerts(5.0)
    alerts.due(waiting(t1=wait(), t2=wait()))
    alerts.due(waiting(t1=wait(seq=2)))
    assert alerts.missed[AlertKind.WAIT] == 2
    alerts.give_up()
    assert alerts.missed[AlertKind.WAIT] == 3
    alerts.due(scenarios.deadlock())
    alerts.give_up()
    assert alerts.missed[AlertKind.DEADLOCK] == 1, "one deadlock of three threads"


def test_the_line_names_thread_lock_holder_and_location() -> None:
    snapshot = scenarios.normal()
    (alert, *_) = sorted(Alerts(0.1).due(snapshot), key=lambda alert: alert.lock)
    assert alert_line.line(alert, snapshot) == (
        "wait: worker-0 (4712) of store 4711 has waited 234 ms for mutex g_cache_lock,"
        " held by worker-2 (4714), in cache_get at /src/store/cache.c:42"
    )
    over = replace(alert, waits=frozenset({(4712, 99, 1), (1, 2, 3)}))
    assert alert_line.line(over, snapshot).endswith(", which is over; so has 1 more")
    gone = Alert(AlertKind.WAIT, 1, 999, 1.0, frozenset({(1, 1, 999)}))
    assert "thread 1 of store 4711 has waited 1.00 s for lock 999" in alert_line.line(
        gone, snapshot
    )
    (deadlock,) = Alerts(None).due(scenarios.deadlock())
    assert alert_line.line(deadlock, scenarios.deadlock()).startswith(
        "deadlock: 3 threads of store"
    )
