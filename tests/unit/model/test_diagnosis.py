"""The sight of the whole is that of its worst check."""

from __future__ import annotations

from locktop.collector.model.diagnosis import WATCH, Diagnosis, Sight, full, limited, none, worst
from locktop.collector.render.doctor import doctor_text


def test_all_is_seen_only_if_nothing_is_missing() -> None:
    assert worst([full("a", "")]) is Sight.FULL
    assert worst([full("a", ""), limited("b", "")]) is Sight.LIMITED
    assert worst([full("a", ""), none("b", "")]) is Sight.LIMITED


def test_a_process_that_cannot_be_watched_is_the_worst() -> None:
    assert worst([full("a", ""), none(WATCH, ""), limited("b", "")]) is Sight.NONE


def test_long_facts_stay_in_their_column() -> None:
    found = Diagnosis((limited("rights", "one two three four five", "six seven"),), 7, "app")
    assert doctor_text(found, 34).splitlines() == [
        "a part is visible of process 7 (app):",
        "  limited  rights  one two three",
        "                   four five",
        "                   -> six seven",
    ]
