"""Lines for a screen reader: facts once, then changes."""

from __future__ import annotations

from unit.builders import scenarios

from locktop.collector.model import Notable, NotableKind
from locktop.collector.recording.history import History
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.accessible import AlertLog, AlertsSoFar, changed, facts


def test_only_changed_facts_are_said() -> None:
    before = {"State": "runs", "Waiters": "1 thread", "Worst lock": "mu"}
    now = {"State": "runs", "Waiters": "2 threads", "Worst lock": "mu"}
    assert changed(before, now) == {"Waiters": "2 threads"}


def test_a_fact_that_is_gone_is_none() -> None:
    before = {"State": "runs", "Held by": "a"}
    assert changed(before, {"State": "runs"}) == {"Held by": "none"}


def test_new_facts_are_said() -> None:
    assert changed({}, {"State": "runs"}) == {"State": "runs"}


def test_the_alerts_are_a_fact_that_does_not_age() -> None:
    index = SnapshotIndex(scenarios.empty())
    assert facts(index)["Alerts"] == "none"
    alerts = [
        Notable(time_ns=second * 10**9, kind=NotableKind.WAIT, text="worker waited 2 s for g_a")
        for second in (20, 40, 60)
    ]
    said = facts(index, AlertsSoFar(alerts))["Alerts"]
    assert said.startswith("3 long waits, one about every 20 s, the last at ")
    assert said.endswith(":01:00: worker waited 2 s for g_a")


def _waits(*seconds: int) -> list[Notable]:
    return [
        Notable(time_ns=second * 10**9, kind=NotableKind.WAIT, text=f"wait {second}", lock=7)
        for second in seconds
    ]


def test_alerts_that_the_memory_forgot_are_counted_and_not_kept() -> None:
    log = AlertLog(None, History())
    deadlock = Notable(time_ns=10**9, kind=NotableKind.DEADLOCK, text="deadlock")
    mark = Notable(time_ns=10**9, kind=NotableKind.MARK, text="mark")
    log.count([deadlock, mark, *_waits(2)])
    for second in range(3, 5000):
        so_far = log.count(_waits(second - 1, second))
    assert so_far.counts == {NotableKind.DEADLOCK: 1, NotableKind.WAIT: 4998}
    assert len(so_far.recent) == 2
    so_far = log.count([])
    assert [alert.text for alert in so_far.recent] == ["wait 4999"], "the last one is told"
    assert log.count([]) == so_far
    assert facts(SnapshotIndex(scenarios.empty()), so_far)["Alerts"].startswith("4999 alerts, the")
    so_far = log.count(_waits(6000))
    assert so_far.counts == {NotableKind.DEADLOCK: 1, NotableKind.WAIT: 4999}
    assert [alert.text for alert in so_far.recent] == ["wait 6000"]
