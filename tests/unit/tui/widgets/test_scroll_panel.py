"""Finding a row by words: the cursor goes there, and no row is hidden."""

from __future__ import annotations

import pytest
from support.driven import opened, row_under_cursor
from unit.builders import scenarios

from locktop.tui.views.styled_line import line_text


async def test_the_cursor_goes_along_while_the_user_types() -> None:
    async with opened(scenarios.many()) as screen:
        rows = screen.locks.count()
        await screen.keys("f", *"shard1")
        assert "shard1.mutex" in row_under_cursor(screen.locks)
        await screen.keys("7")
        assert "shard17.mutex" in row_under_cursor(screen.locks)
        await screen.keys("backspace")
        assert "shard1.mutex" in row_under_cursor(screen.locks)
        assert screen.locks.count() == rows


async def test_the_search_goes_on_in_both_directions_and_past_the_end() -> None:
    async with opened(scenarios.many()) as screen:
        await screen.keys("f", *"SHARD99", "enter")
        assert "shard99.mutex" in row_under_cursor(screen.locks)
        await screen.keys("n")
        assert "shard990.mutex" in row_under_cursor(screen.locks)
        await screen.keys("N", "N")
        assert "shard999.mutex" in row_under_cursor(screen.locks)
        await screen.keys("n")
        assert "shard99.mutex" in row_under_cursor(screen.locks)


async def test_words_that_no_row_has_are_a_message() -> None:
    async with opened() as screen:
        await screen.keys("n")
        await screen.says("No words to find yet")
        before = row_under_cursor(screen.locks)
        await screen.keys("f", *"nowhere", "enter")
        await screen.says("No row has “nowhere”.")
        assert row_under_cursor(screen.locks) == before


async def test_escape_leaves_the_cursor_where_the_search_began() -> None:
    async with opened(scenarios.many()) as screen:
        await screen.keys("j", "j")
        before = row_under_cursor(screen.locks)
        await screen.keys("f", *"shard70", "escape")
        assert row_under_cursor(screen.locks) == before
        assert screen.locks.has_focus


async def test_the_details_scroll_to_the_line() -> None:
    async with opened(scenarios.deadlock()) as screen:
        await screen.keys("d", "f", *"philosopher-2", "enter")
        assert screen.details.has_focus
        assert "philosopher-2" in line_text(screen.details.content_line(screen.details.top)[0])


async def test_half_pages_go_down_and_up() -> None:
    async with opened(scenarios.many()) as screen:
        page = screen.locks.page
        await screen.keys("ctrl+d")
        assert f"shard{page // 2}.mutex" in row_under_cursor(screen.locks)
        await screen.keys("ctrl+u")
        assert "shard0.mutex" in row_under_cursor(screen.locks)


async def test_lines_that_come_and_go_do_not_change_the_height() -> None:
    async with opened(scenarios.many()) as screen:
        details, lines = screen.details, [(("a line", "text"),)]
        heights = []
        for count in (60, 63, 66, 63, 66, 50, 30):
            details.show("subject", lines * count)
            heights.append(details.virtual_size.height - details.heads)
        assert heights == [64, 64, 80, 80, 80, 80, 32]


@pytest.mark.parametrize("keys", [("7", "G"), ("d", "G"), ("2", "tab", "tab", "G")], ids=str)
async def test_a_higher_terminal_shows_the_begin_again(keys: tuple[str, ...]) -> None:
    async with opened(scenarios.deadlock(), size=(80, 24)) as screen:
        await screen.keys(*keys)
        assert screen.details.top
        for height in (*range(25, 60, 3), 200):
            await screen.resize(80, height)
            panel = screen.details
            assert panel.top <= max(0, panel.count() - panel.page), height
        assert not screen.details.top
