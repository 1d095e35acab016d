"""The sight of the whole is that of its worst check."""

from __future__ import annotations

from locktop.collector.model.diagnosis import WATCH, Sight, full, limited, none, worst


def test_all_is_seen_only_if_nothing_is_missing() -> None:
    assert worst([full("a", "")]) is Sight.FULL
    assert worst([full("a", ""), limited("b", "")]) is Sight.LIMITED
    assert worst([full("a", ""), none("b", "")]) is Sight.LIMITED


def test_a_process_that_cannot_be_watched_is_the_worst() -> None:
    assert worst([full("a", ""), none(WATCH, ""), limited("b", "")]) is Sight.NONE
