"""The alerts of the past in words."""

from __future__ import annotations

import pytest

from locktop.collector.model import Notable, NotableKind
from locktop.tui.views.past_alerts import NO_ALERTS, PastAlerts, how_many, how_often, quiet_text

_SECOND = 1_000_000_000
_BEGIN = "Quiet now. "


def alerts(*seconds: float, kind: NotableKind = NotableKind.WAIT) -> list[Notable]:
    """Return alerts at these seconds."""
    return [Notable(time_ns=round(one * _SECOND), kind=kind, text="", lock=7) for one in seconds]


def seen_at(second: float, found: list[Notable]) -> PastAlerts:
    """Return the alerts as seen from a second."""
    return PastAlerts(found, round(second * _SECOND))


def test_a_quiet_moment_says_how_many_how_often_and_how_long_ago() -> None:
    past = seen_at(28 * 20 + 12, alerts(*(20 * (number + 1) for number in range(28))))
    wide, narrow = (quiet_text(past, "g_cache_lock", _BEGIN, width) for width in (120, 80))
    assert narrow == " Quiet now. 28 long waits, one about every 20 s, the last 12 s ago (key {)"
    assert wide == f"{narrow.removesuffix(' (key {)')} for g_cache_lock (key {{)"
    assert (
        quiet_text(past, "", _BEGIN, 55) == " Quiet now. 28 long waits, the last 12 s ago (key {)"
    )
    assert quiet_text(past, "", _BEGIN, 9) == " Quiet now. 28 long waits (key {)"


@pytest.mark.parametrize("gap", [1, 59, 61, 700, 3599, 7200])
def test_the_whole_text_fits_eighty_columns(gap: int) -> None:
    past = seen_at(1001 * gap - 1, alerts(*(gap * number for number in range(1, 1001))))
    text = quiet_text(past, "a_lock_with_a_long_name_of_some_namespace", "Quiet now. ", 80)
    assert len(text) <= 80
    assert "1000 long waits" in text
    assert " ago" in text


def test_one_alert_is_not_the_last_of_several() -> None:
    text = quiet_text(seen_at(73, alerts(61)), "", _BEGIN, 80)
    assert text == " Quiet now. 1 long wait, 12 s ago (key {)"


def test_two_alerts_have_no_rhythm() -> None:
    text = quiet_text(seen_at(100, alerts(20, 40)), "", _BEGIN, 80)
    assert text == " Quiet now. 2 long waits, the last 1 min 00 s ago (key {)"


@pytest.mark.parametrize(
    "seconds", [(10, 11, 12, 13, 900, 2000, 9000), (10, 10.1, 10.2, 10.3), (1, 2, 60, 61, 120)]
)
def test_alerts_without_a_rhythm_have_no_frequency(seconds: tuple[float, ...]) -> None:
    assert how_often(alerts(*seconds)) == ""


def test_one_long_pause_does_not_hide_the_rhythm() -> None:
    assert how_often(alerts(0, 20, 41, 60, 79, 400, 420)) == ", one about every 20 s"


def test_a_moment_before_all_alerts_leads_to_the_next() -> None:
    found = alerts(30, 50)
    assert quiet_text(seen_at(18, found), "", _BEGIN, 80) == (
        " Quiet now. 2 long waits to come, the first in 12 s (key })"
    )
    assert quiet_text(seen_at(18, found[:1]), "", _BEGIN, 80).endswith(
        "wait to come, in 12 s (key })"
    )
    assert "1 long wait, 5 s ago (key {)" in quiet_text(seen_at(35, found), "", _BEGIN, 80)


def test_alerts_of_both_kinds_are_alerts() -> None:
    deadlocks = alerts(1, kind=NotableKind.DEADLOCK)
    assert how_many(deadlocks) == "1 deadlock"
    assert how_many([*deadlocks, *alerts(2)]) == "2 alerts"


def test_without_alerts_there_is_no_text() -> None:
    assert quiet_text(NO_ALERTS, "", _BEGIN, 80) == ""
