"""The first line: names that fit, and brackets at the view in use."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from locktop.tui.monitor_views import VIEWS
from locktop.tui.views.styled_line import line_text
from locktop.tui.widgets.view_bar import view_bar


@pytest.mark.parametrize("width", [40, 80, 120, 200])
@pytest.mark.parametrize("view", [view.name for view in VIEWS])
def test_the_line_fits_and_has_the_view_in_use(width: int, view: str) -> None:
    text = line_text(view_bar(view, width))
    assert cell_len(text) <= width
    (current,) = (each for each in VIEWS if each.name == view)
    assert f"[{current.digit} " in text


def test_80_columns_have_every_digit_and_the_name_in_brackets() -> None:
    text = line_text(view_bar("blocking", 80))
    assert "[4 Block]" in text
    assert all(f"{view.digit} {view.short}" in text for view in VIEWS)


def test_the_names_of_a_wide_line_are_whole() -> None:
    text = line_text(view_bar("overview", 140))
    assert text.startswith("[1 Overview] 2 Locks 3 Threads 4 Blocking".replace("] ", "]"))


def test_no_two_views_share_a_digit() -> None:
    assert len({view.digit for view in VIEWS}) == len(VIEWS)
