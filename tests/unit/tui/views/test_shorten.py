"""Long names in little room."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from locktop.tui.views.shorten import fit_location, lock_name_in, middle


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


@pytest.mark.parametrize(
    ("text", "room", "short"),
    [
        ("transfer accounts_deadlock.c:18", 31, "transfer accounts_deadlock.c:18"),
        ("transfer accounts_deadlock.c:18", 24, "transfer …deadlock.c:18 "),
        ("transfer accounts_deadlock.c:18", 18, "transfer:18       "),
        ("transfer accounts_deadlock.c:18", 8, "tra…c:18"),
        ("ask_payment_provider orders_service.py:18", 18, "ask_…service.py:18"),
        ("pool<int>::take(long) pool.cc:1234", 24, "pool::take pool.cc:1234 "),
        ("main /usr/src/project/deep/main.c:7", 24, "main …/deep/main.c:7    "),
        ("very_long_directory/file.c:12345", 14, "…/file.c:12345"),
        ("libc.so.6+0x1234", 12, "libc.…0x1234"),
    ],
)
def test_a_location_loses_the_begin_of_its_path_and_never_its_line(
    text: str, room: int, short: str
) -> None:
    assert fit_location(text, room) == short


@pytest.mark.parametrize("room", range(7, 60))
def test_a_location_keeps_its_line_in_any_room(room: int) -> None:
    for function in ("f", "a_function_with_a_long_name", "std::map<int, a::b<c>>::find(int) const"):
        text = fit_location(f"{function} directory/some_file.cc:12345", room)
        assert cell_len(text) == room
        assert text.rstrip().endswith(":12345")


@pytest.mark.parametrize(
    ("name", "room", "short"),
    [
        ("Rust Mutex<Journal>", 19, "Rust Mutex<Journal>"),
        ("Rust Mutex<Journal>", 18, "Mutex<Journal>"),
        ("Rust Mutex<Journal>", 13, "Journal"),
        ("Rust RwLock<Vec<Entry>>", 14, "Vec<Entry>"),
        ("Rust Mutex<u64> in append (journal.rs:5)", 30, "Rust Mutex<u64> in append:5"),
        ("std::map<int, Session>::mu", 14, "std::map::mu"),  # the arguments guard nothing
    ],
)
def test_the_guarded_type_of_a_lock_stays(name: str, room: int, short: str) -> None:
    assert lock_name_in(name, room) == short
