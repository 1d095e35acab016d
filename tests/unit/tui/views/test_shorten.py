"""Long names in little room."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from locktop.tui.views.shorten import middle


@pytest.mark.parametrize(
    ("text", "room", "short"),
    [
        ("pool::mutexcond", 15, "pool::mutexcond"),
        ("server::pool::mutexcond", 15, "serve…mutexcond"),  # not "…xcond"
        ("server::pool::mutexcond", 11, "s…mutexcond"),
        ("server::pool::mutexcond", 9, "serv…cond"),  # there is no room for the word
        ("g_table_of_all_open_files_lock", 16, "g_tab…files_lock"),
        ("registry->entries[12].mutex", 11, "regis…mutex"),
    ],
)
def test_the_end_of_a_name_begins_with_a_word(text: str, room: int, short: str) -> None:
    assert middle(text, room) == short


@pytest.mark.parametrize("room", range(30))
def test_a_short_name_has_room(room: int) -> None:
    for text in ("server::pool::mutexcond", "線程線程線程線程線程線程線程線程", "a" * 40):
        assert cell_len(middle(text, room)) <= room
