"""Figures as text, for cells and for sentences."""

from __future__ import annotations

import pytest

from locktop.collector.render.words.units import (
    COUNT_WIDTH,
    DURATION_WIDTH,
    PERCENT_WIDTH,
    SIZE_WIDTH,
    clock,
    count,
    counted,
    duration,
    exact,
    lasting,
    percent,
    size,
)


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
        (0.9995, "1.00s"),
        (0.99951, "1.00s"),
        (9.994, "9.99s"),
        (9.995, "10.0s"),
        (99.94, "99.9s"),
        (99.95, "100s"),
        (99.96, "100s"),
        (599.4, "599s"),
        (599.5, "10m00s"),
        (754.0, "12m34s"),
        (3599.4, "59m59s"),
        (3599.5, "1h00m"),
        (86_399.0, "23h59m"),
        (86_400.0, "1d00h"),
        (9_000_000.0, "104d"),
        (8_640_000.0, "100d"),
    ],
)
def test_a_duration_has_a_unit_and_three_digits(seconds: float | None, text: str) -> None:
    assert duration(seconds, DURATION_WIDTH) == text
    assert len(text) <= DURATION_WIDTH


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (None, "-"),
        (0, "0"),
        (0.001, "<0.01"),
        (0.01, "0.01"),
        (0.25, "0.25"),
        (7, "7"),
        (7.5, "7.50"),
        (999, "999"),
        (999.5, "1.00k"),
        (12_345, "12.3k"),
        (999_499, "999k"),
        (999_999, "1.00M"),
        (1.5e9, "1.50G"),
        (999.4e15, "999P"),
        (999.5e15, ">999P"),
    ],
)
def test_a_count_is_shortened_with_a_unit(number: float | None, text: str) -> None:
    assert count(number) == text
    assert len(text) <= COUNT_WIDTH


def test_every_magnitude_stays_within_its_column() -> None:
    for exponent in range(-120, 180):
        value = 10 ** (exponent / 12) * 1.0007
        assert len(count(value)) <= COUNT_WIDTH, value
        if value < 8e7:
            assert len(duration(value, DURATION_WIDTH)) <= DURATION_WIDTH, value


def test_a_percentage_shows_no_zero_for_a_little_and_no_hundred_for_less() -> None:
    said = [percent(share, PERCENT_WIDTH) for share in (-1, 0, 0.001, 0.01, 0.5, 0.999, 1, 1.2)]
    assert said == ["0%", "0%", "<1%", "1%", "50%", "99%", "100%", "100%"]


def test_a_figure_that_was_not_measured_is_a_dash() -> None:
    assert (duration(None), count(None), exact(None)) == ("-", "-", "-")
    assert (percent(None), percent(None, PERCENT_WIDTH)) == ("-", "-")


def test_other_figures_as_text() -> None:
    assert exact(1_234_567) == "1,234,567"
    assert clock(3725.9) == "01:02:05"
    assert [size(n, SIZE_WIDTH) for n in (0, 512, 1 << 20, 3 << 30)] == [
        "0B",
        "512B",
        "1.00M",
        "3.00G",
    ]


def test_durations_in_sentences() -> None:
    texts = [duration(s) for s in (0, 8.5e-7, 1.234e-3, 0.9999, 12.34, 599.9, 600)]
    assert texts == ["0", "850 ns", "1.23 ms", "1.00 s", "12.3 s", "600 s", "10 min 00 s"]
    assert [duration(s) for s in (3599, 3600, 11100, 90_000)] == [
        "59 min 59 s", "1 h 00 min", "3 h 05 min", "25 h 00 min",
    ]  # fmt: skip
    assert [size(n) for n in (0, 999, 999.5, 1259, 5 << 30, 5 << 50)] == [
        "0 B", "999 B", "0.98 KiB", "1.23 KiB", "5.00 GiB", "5120 TiB",
    ]  # fmt: skip


def test_a_lower_bound_of_a_duration_says_so() -> None:
    assert lasting(1.234, False) == "1.23 s"
    assert lasting(1.234, True) == "at least 1.23 s"
    assert lasting(1.234, True, DURATION_WIDTH) == ">1.23s"


def test_shares_in_sentences() -> None:
    said = [percent(share) for share in (-1, 0, 0.0001, 0.001, 0.1234, 0.9999, 1, 1.5)]
    assert said == ["0 %", "0 %", "<0.1 %", "0.1 %", "12.3 %", "99.9 %", "100.0 %", "150.0 %"]


def test_numbers_agree_with_their_nouns() -> None:
    assert [counted(n, "lock") for n in (0, 1, 2)] == ["0 locks", "1 lock", "2 locks"]
