"""The pace of drawing follows the terminal."""

from __future__ import annotations

import pytest

from locktop.tui.frame_pacer import DRAWN_TO_RAISE, SKIPS_TO_LOWER, Pacer


def test_pace_is_lowered_by_a_slow_terminal_and_comes_back() -> None:
    pacer = Pacer(2.0)
    for _ in range(SKIPS_TO_LOWER):
        assert not pacer.may_draw(drained=False)
    assert pacer.pace.actual == 1.0
    assert pacer.pace.target == 2.0
    assert "slow terminal" in pacer.pace.text
    for _ in range(DRAWN_TO_RAISE):
        assert pacer.may_draw(drained=True)
    assert pacer.pace.actual == 2.0
    assert pacer.pace.text == "2 updates/s"


def test_the_pace_stays_within_its_bounds() -> None:
    pacer = Pacer(2.0)
    pacer.step(100)
    assert pacer.interval_s == pytest.approx(0.1)
    pacer.step(-100)
    assert pacer.interval_s == pytest.approx(10.0)
    for _ in range(20):
        pacer.may_draw(drained=False)
    assert pacer.interval_s == pytest.approx(10.0)
