"""Lines for a screen reader: facts once, then changes."""

from __future__ import annotations

from unit.builders import scenarios

from locktop.collector.model import Notable, NotableKind
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.accessible import changed, facts


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
    said = facts(index, alerts)["Alerts"]
    assert said.startswith("3 long waits, one about every 20 s, the last at ")
    assert said.endswith(":01:00: worker waited 2 s for g_a")
