"""Lines for a screen reader: facts once, then changes."""

from __future__ import annotations

from locktop.tui.accessible import changed


def test_only_changed_facts_are_said() -> None:
    before = {"State": "runs", "Waiters": "1 thread", "Worst lock": "mu"}
    now = {"State": "runs", "Waiters": "2 threads", "Worst lock": "mu"}
    assert changed(before, now) == {"Waiters": "2 threads"}


def test_a_fact_that_is_gone_is_none() -> None:
    before = {"State": "runs", "Held by": "a"}
    assert changed(before, {"State": "runs"}) == {"Held by": "none"}


def test_new_facts_are_said() -> None:
    assert changed({}, {"State": "runs"}) == {"State": "runs"}
