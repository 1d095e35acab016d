"""Bars, and texts in cells of a width."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from locktop.tui.views.cells import bar, fit


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
