"""Bars, and texts in cells of a width."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from locktop.tui.views.cells import bar, fit, fit_name, fit_right


def test_a_bar_has_its_width_and_shows_small_shares() -> None:
    assert bar(0, 6) == "      "
    assert bar(0.01, 6).strip() != ""
    assert bar(1, 6) == bar(7, 6) == "━━━━━━"
    assert all(len(bar(n / 100, 6)) == 6 for n in range(101))


@pytest.mark.parametrize(
    "text", ["", "plain", "x" * 50, "線程の名前", "e\u0301" * 30, "\x1b[2J\n\t", "\u202egnp.exe"]
)
def test_fit_returns_printable_text_of_the_exact_width(text: str) -> None:
    for width in (1, 2, 7, 40):
        fitted = fit(text, width)
        assert cell_len(fitted) == width
        assert fitted.isprintable()


@pytest.mark.parametrize(
    ("name", "fitted"),
    [
        ("worker-1", "worker-1     "),
        ("a_long_name_of_it", "a_long_name_…"),
        ("busy_cro:10571", "busy_c…:10571"),
        ("busy_crowd_of_many:7", "busy_crowd…:7"),
        ("a::12345678901234", "a::123456789…"),
    ],
)
def test_the_name_of_a_lane_keeps_its_number(name: str, fitted: str) -> None:
    assert fit_name(name, 13) == fitted


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("56m35s", "56m35s"),
        (">56m35s", "  >56m"),
        (">3h05m", ">3h05m"),
        (">12h05m", "  >12h"),
        (">1.23ms", ">1.2ms"),
        (">12.3ms", " >12ms"),
        (">1.23s", ">1.23s"),
    ],
)
def test_a_lower_bound_that_is_too_long_loses_its_smaller_unit_or_last_digit(
    text: str, cell: str
) -> None:
    assert fit_right(text, 6) == cell
