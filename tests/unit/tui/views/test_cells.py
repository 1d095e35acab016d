"""Figures as short text."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from locktop.tui.views import cells
from locktop.tui.views.cells import bar, clock, count, duration, exact, fit, percent, size


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (0.0, "0"),
        (-1.0, "0"),
        (4e-10, "0ns"),
        (850e-9, "850ns"),
        (0.9996e-6, "1.00us"),
        (1.234e-6, "1.23us"),
        (12.34e-6, "12.3us"),
        (999.4e-6, "999us"),
        (0.9997e-3, "1.00ms"),
        (0.0999, "99.9ms"),
        (0.09996, "100ms"),
        (0.99951, "1.00s"),
        (9.996, "10.0s"),
        (99.96, "100s"),
        (599.4, "599s"),
        (599.6, "10m00s"),
        (754.0, "12m34s"),
        (3599.6, "1h00m"),
        (86_400.0, "1d00h"),
        (8_640_000.0, "100d"),
    ],
)
def test_duration(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text
    assert len(text) <= cells.DURATION_WIDTH


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (0.001, "<0.01"),
        (0.25, "0.25"),
        (7, "7"),
        (7.5, "7.50"),
        (999, "999"),
        (999.5, "1.00k"),
        (12_345, "12.3k"),
        (999_499, "999k"),
        (999_999, "1.00M"),
        (1.5e9, "1.50G"),
        (1e30, ">999P"),
    ],
)
def test_count(number: float, text: str) -> None:
    assert count(number) == text
    assert len(text) <= cells.COUNT_WIDTH


def test_every_magnitude_stays_within_its_column() -> None:
    for exponent in range(-120, 180):
        value = 10 ** (exponent / 12) * 1.0007
        assert len(count(value)) <= cells.COUNT_WIDTH, value
        if value < 8e7:
            assert len(duration(value)) <= cells.DURATION_WIDTH, value


def test_percent_says_neither_nothing_of_a_little_nor_all_of_less() -> None:
    said = [percent(share) for share in (0, 0.001, 0.5, 0.999, 1, 1.2)]
    assert said == ["0%", "<1%", "50%", "99%", "100%", "100%"]


def test_bar_is_as_wide_as_asked_and_shows_a_little() -> None:
    assert bar(0, 6) == "      "
    assert bar(0.01, 6).strip() != ""
    assert bar(1, 6) == bar(7, 6) == "━━━━━━"
    assert all(len(bar(n / 100, 6)) == 6 for n in range(101))


def test_other_figures() -> None:
    assert exact(1_234_567) == "1,234,567"
    assert clock(3725.9) == "01:02:05"
    assert [size(n) for n in (0, 512, 1 << 20, 3 << 30)] == ["0B", "512B", "1.00M", "3.00G"]


@pytest.mark.parametrize(
    "text", ["", "plain", "x" * 50, "線程の名前", "e\u0301" * 30, "\x1b[2J\n\t", "\u202egnp.exe"]
)
def test_fit_is_exactly_as_wide_as_asked_and_printable(text: str) -> None:
    for width in (1, 2, 7, 40):
        fitted = fit(text, width)
        assert cell_len(fitted) == width
        assert fitted.isprintable()
