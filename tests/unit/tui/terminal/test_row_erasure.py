"""A row whose changed part is erased first, and the order of its output."""

from __future__ import annotations

import pytest
from support.emulator import Emulator, differences

from locktop.tui.terminal.cells import TerminalCells
from locktop.tui.terminal.description import Abilities

WIDTH, HEIGHT = 60, 3
NEW = f"{'a':16}{'b':16}{'c':8}"


def sent_for(before: str, after: str, abilities: Abilities) -> str:
    """Return what is sent for the second of two rows. The terminal must show that row."""
    cells, whole, reduced = (
        TerminalCells(abilities), Emulator(WIDTH, HEIGHT), Emulator(WIDTH, HEIGHT)
    )  # fmt: skip
    cells.resize(WIDTH, HEIGHT)
    sent = ""
    for row in (before, after):
        data = f"\x1b[1;1H{row}\x1b[0m\x1b[1;1H"
        sent = cells.reduce(data)
        whole.feed(data.encode())
        reduced.feed(sent.encode())
    assert differences(reduced, whole) == []
    return sent


@pytest.mark.parametrize(
    ("rest", "erasure"), [(" " * 20, "\x1b[K"), ("x" * 20, "\x1b[40X")], ids=["row", "part"]
)
def test_the_part_that_changes_is_erased_first(rest: str, erasure: str) -> None:
    before, after = "x" * WIDTH, NEW + rest
    sent = sent_for(before, after, Abilities(erases=True))
    assert sent == f"\x1b[H{erasure}a\x1b[15Cb\x1b[15Cc\r"
    assert erasure not in sent_for(before, after, Abilities())


def row_of(text: str, blank: str) -> str:
    """A row with three texts between blanks, each with a style of its own."""
    parts = (f"{blank}{text}{letter}{blank}{' ' * 15}" for letter in "abc")
    return "".join(parts) + " " * (WIDTH - 48)


@pytest.mark.parametrize("text", ["\x1b[48;2;1;1;1m", "\x1b[38;2;3;3;3m", "\x1b[1m"])
def test_each_style_of_erased_rows_is_sent_once(text: str) -> None:
    """The erasures of all rows go first, whatever the order of the backgrounds."""
    blank = "\x1b[0;48;2;2;2;2m"
    cells, whole, reduced = (
        TerminalCells(Abilities(erases=True)), Emulator(WIDTH, HEIGHT), Emulator(WIDTH, HEIGHT)
    )  # fmt: skip
    cells.resize(WIDTH, HEIGHT)
    sent = ""
    for row in ("x" * WIDTH, row_of(text, blank)):
        data = "".join(f"\x1b[{y};1H{row}\x1b[0m" for y in range(1, HEIGHT + 1))
        sent = cells.reduce(data)
        whole.feed(data.encode())
        reduced.feed(sent.encode())
    assert differences(reduced, whole) == []
    assert sent.count("\x1b[K") == HEIGHT
    assert sent.count("48;2;2;2;2") == 1


@pytest.mark.parametrize("odd", ["線", "e\u0301"])
def test_a_row_with_an_odd_character_is_not_erased_first(odd: str) -> None:
    abilities = Abilities(erases=True)
    before, after = "x" * WIDTH, NEW + " " * 20
    for old, new in ((odd + before[2:], after), (before, f"{NEW[:-2]}{odd}{' ' * 10}")):
        assert not sent_for(old, new, abilities).startswith(("\x1b[H\x1b[K", "\x1b[H\x1b[40X"))
