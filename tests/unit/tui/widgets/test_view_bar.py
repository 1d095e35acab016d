"""The first line: names that fit, brackets at the view in use, flags at the right end."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from locktop.tui.monitor_views import VIEWS
from locktop.tui.views.styled_line import line_text, make_line
from locktop.tui.widgets.view_bar import view_bar

FLAG = make_line((" PAST  12:03:04  -12 min 05 s  0.25x ", "flag"))


@pytest.mark.parametrize("width", [40, 80, 120, 200])
@pytest.mark.parametrize("view", [view.name for view in VIEWS])
@pytest.mark.parametrize("flags", [(), FLAG], ids=["plain", "past"])
def test_the_line_fills_the_width_and_keeps_the_flags(
    width: int, view: str, flags: tuple[tuple[str, str], ...]
) -> None:
    text = line_text(view_bar(view, flags, width))
    assert cell_len(text) == width
    assert text.endswith(line_text(flags))


def test_80_columns_have_every_digit_and_the_name_in_brackets() -> None:
    text = line_text(view_bar("blocking", (), 80))
    assert "[4 Block]" in text
    assert all(f"{view.digit} " in text for view in VIEWS)


def test_the_names_of_a_wide_line_are_whole() -> None:
    text = line_text(view_bar("overview", (), 140))
    assert text.startswith("[1 Overview] 2 Locks 3 Threads 4 Blocking".replace("] ", "]"))


def test_the_digits_remain_beside_a_long_flag() -> None:
    text = line_text(view_bar("threads", FLAG, 80))
    assert "1 2[3 Thr]4 5 6 7 8 9 0" in text


def test_no_two_views_share_a_digit() -> None:
    assert len({view.digit for view in VIEWS}) == len(VIEWS)
