"""Reduced output leaves every cell of the terminal as the whole output would."""

from __future__ import annotations

import random
import re

import pyte
import pytest
from support.emulator import Emulator, Kind, differences
from support.seeds import seeds

from locktop.tui.terminal.cells import TerminalCells
from locktop.tui.terminal.description import Abilities

WIDTH, HEIGHT = 24, 6
LARGE = (80, 24)
STYLES = (
    "", "0", "1", "31", "1;31", "38;2;1;2;3", "48;2;17;21;27", "38;2;9;9;9;48;2;17;21;27",
    "4;48;2;17;21;27", "7;31;48;2;17;21;27", "2;3;44", "44", "9;44",
)  # fmt: skip
#: Pairs of cells, so that no painting begins in the middle of a wide character.
PAIRS = ("  ", "  ", "  ", "  ", "  ", "  ", "ab", "c ", " d", "──", "線", "名", "e\u0301f")


def painting(chance: random.Random, rows: range = range(HEIGHT)) -> str:
    """Some parts of rows, as Textual paints them."""
    parts = []
    for y in sorted(chance.sample(rows, chance.randint(1, len(rows)))):
        begin = chance.randrange(0, WIDTH // 2)
        end = chance.randint(begin + 1, WIDTH // 2)
        out = [f"\x1b[{y + 1};{2 * begin + 1}H"]
        while begin < end:
            count = min(end - begin, chance.choice((1, 2, 3, 12)))
            pair = chance.choice(PAIRS)
            out.append(f"\x1b[{chance.choice(STYLES)}m{pair * count}\x1b[0m")
            begin += count
        parts.append("".join(out))
    return "\n".join(parts) + f"\x1b[{chance.randint(1, HEIGHT)};{chance.randint(1, WIDTH)}H"


ALL = Abilities(erases=True, moves_rows=True, repeats=True, feeds=True)


def new_cells(abilities: Abilities = ALL) -> TerminalCells:
    cells = TerminalCells(abilities)
    cells.resize(WIDTH, HEIGHT)
    return cells


def paint_both(data: str, cells: TerminalCells, whole: Emulator, reduced: Emulator) -> str:
    """Send ``data`` to one terminal and what is needed of it to the other; return that.

    Both terminals must show the same afterwards.
    """
    sent = cells.reduce(data)
    whole.feed(data.encode())
    reduced.feed(sent.encode())
    assert differences(reduced, whole) == []
    return sent


@pytest.mark.parametrize("abilities", [ALL, Abilities()], ids=["all", "none"])
def test_the_terminal_shows_what_was_painted(abilities: Abilities) -> None:
    for seed in seeds(100):
        chance = random.Random(seed)
        cells = new_cells(abilities)
        whole, reduced = Emulator(WIDTH, HEIGHT), Emulator(WIDTH, HEIGHT)
        for _ in range(30):
            paint_both(painting(chance), cells, whole, reduced)


def test_a_terminal_that_shows_odd_characters_narrower_keeps_no_old_cell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The cell beside such a character is blank, and all others are right."""
    for seed in seeds(50):
        chance = random.Random(seed)
        cells = new_cells()
        narrow, usual = Emulator(WIDTH, HEIGHT), Emulator(WIDTH, HEIGHT)
        for _ in range(30):
            data = painting(chance)
            usual.feed(data.encode())
            with monkeypatch.context() as patch:
                patch.setattr(pyte.screens, "wcwidth", lambda text: min(1, len(text)))
                # A mark of its own would take a cell. This terminal drops it.
                narrow.feed(cells.reduce(data).replace("\u0301", "").encode())
        for _, _, one, other in differences(narrow, usual):
            assert (one.text == " " and not other.text) or other.text == "\xe9"


def painted_rows(rows: list[str]) -> str:
    """All rows of a screen, from the top."""
    return "".join(f"\x1b[{y};1H{row}" for y, row in enumerate(rows, start=1)) + "\x1b[1;1H"


def some_row(chance: random.Random) -> str:
    """A row of a large screen, with a background."""
    parts, left = [], LARGE[0] // 2
    while left:
        count = min(left, chance.choice((1, 3, 20)))
        parts.append(f"\x1b[{chance.choice(STYLES)}m{chance.choice(PAIRS) * count}\x1b[0m")
        left -= count
    return "".join(parts)


@pytest.mark.parametrize("abilities", [ALL, Abilities(moves_rows=True)], ids=["all", "rows"])
def test_the_terminal_shows_rows_that_moved(abilities: Abilities) -> None:
    for seed in seeds(30):
        chance = random.Random(seed)
        cells = TerminalCells(abilities)
        cells.resize(*LARGE)
        whole, reduced, moves = Emulator(*LARGE), Emulator(*LARGE), 0
        rows = [some_row(chance) for _ in range(LARGE[1])]
        for _ in range(10):
            moves += paint_both(painted_rows(rows), cells, whole, reduced).count("\x1b[r")
            by, top, end = chance.randint(1, 6), chance.randint(0, 5), chance.randint(18, LARGE[1])
            new = [some_row(chance) for _ in range(by)]
            part = rows[top:end]
            part = new + part[:-by] if chance.random() < 0.5 else part[by:] + new
            rows = [*rows[:top], *part, *rows[end:]]
        assert moves > 5


def test_the_terminal_moves_rows_itself() -> None:
    cells = TerminalCells(Abilities(erases=True, moves_rows=True))
    cells.resize(*LARGE)
    back = "48;2;17;21;27"
    blank = f"\x1b[{back}m{' ' * LARGE[0]}\x1b[0m"
    rows = [f"\x1b[{back}m{chr(97 + y) * 60:<{LARGE[0]}}\x1b[0m" for y in range(12)]
    below = [blank] * (LARGE[1] - 15)
    cells.reduce(painted_rows([*rows, blank, blank, blank, *below]))
    down = cells.reduce(painted_rows([blank, blank, blank, *rows, *below]))
    assert down == f"\x1b[1;15r\x1b[1H\x1b[{back}m\x1b[3L\x1b[r\x1b[m\x1b[H"
    up = cells.reduce(painted_rows([*rows, blank, blank, blank, *below]))
    assert up == f"\x1b[1;15r\x1b[1H\x1b[{back}m\x1b[3M\x1b[r\x1b[m\x1b[H"


@pytest.mark.parametrize("kind", [Kind.TMUX_3_3, Kind.SCREEN])
def test_drawn_lines_show_what_was_painted(kind: Kind) -> None:
    for seed in seeds(30):
        chance = random.Random(seed)
        repeats_ascii = kind == Kind.TMUX_3_3
        cells = new_cells(Abilities(repeats_ascii=repeats_ascii, draws_lines=True))
        whole, reduced, lines = Emulator(WIDTH, HEIGHT, kind), Emulator(WIDTH, HEIGHT, kind), 0
        for _ in range(30):
            lines += paint_both(painting(chance), cells, whole, reduced).count("\x1b(0")
        assert lines


def test_equal_characters_are_repeated() -> None:
    rule = f"\x1b[1;1H─{'─' * 9} {'=' * 7} ██\x1b[1;1H"
    sent = new_cells(Abilities(repeats=True)).reduce(rule)
    assert sent == "\x1b[H─\x1b[9b =\x1b[6b ██\r"
    assert new_cells(Abilities()).reduce(rule) == f"\x1b[H{rule[6:-6]}\r"


def test_a_wide_character_is_not_repeated() -> None:
    sent = new_cells().reduce("\x1b[1;1H" + "線" * 5 + "e\u0301" * 5 + "\x1b[1;1H")
    assert sent.count("線") == sent.count("e\u0301") == 5


def test_the_cursor_goes_back_and_down_by_single_characters() -> None:
    column = "".join(f"\x1b[{y};3H-" for y in (1, 2, 3)) + "\x1b[1;1H"
    assert new_cells().reduce(column) == "\x1b[1;3H-\v\b-\v\b-\x1b[H"
    assert new_cells(Abilities()).reduce(column) == "\x1b[1;3H-\x1b[B\b-\x1b[B\b-\x1b[H"


def test_what_is_painted_again_is_not_sent() -> None:
    cells, data = new_cells(), painting(random.Random(1))
    assert cells.reduce(data)
    assert cells.reduce(data) == ""


def test_a_movement_of_the_cursor_alone_is_sent() -> None:
    cells = new_cells()
    cells.reduce("\x1b[1;1Htext\x1b[1;3H")
    assert cells.reduce("\x1b[1;1Htext\x1b[2;5H") == "\x1b[2;5H"


def test_few_unchanged_cells_are_sent_again_and_many_are_skipped() -> None:
    cells = new_cells()
    cells.reduce("\x1b[1;1Habcdefghijklm\x1b[1;1H")
    assert cells.reduce("\x1b[1;1HAbCdefghijkLm\x1b[1;1H") == "\x1b[HAbC\x1b[8CL\r"


def test_blanks_to_the_end_of_a_row_are_erased() -> None:
    text = f"\x1b[1;1H{'x' * WIDTH}\x1b[1;1H"
    blanks = f"\x1b[1;1Hxx\x1b[44m{' ' * (WIDTH - 2)}\x1b[0m\x1b[1;1H"
    for abilities, sent in (
        (Abilities(erases=True), "\x1b[1;3H\x1b[44m\x1b[K\x1b[m\r"),
        (Abilities(), f"\x1b[1;3H\x1b[44m{' ' * (WIDTH - 2)}\x1b[m\x1b[H"),
        (Abilities(repeats=True), f"\x1b[1;3H\x1b[44m \x1b[{WIDTH - 3}b\x1b[m\x1b[H"),
    ):
        cells = new_cells(abilities)
        cells.reduce(text)
        assert cells.reduce(blanks) == sent


def test_a_style_that_the_eye_does_not_see_is_not_sent() -> None:
    cells = new_cells()
    cells.reduce("\x1b[1;1H\x1b[31mab\x1b[0m \x1b[31mcd\x1b[0m\x1b[1;1H")
    sent = cells.reduce("\x1b[1;1H\x1b[32mxy\x1b[0m \x1b[32mz\x1b[0m\x1b[1;1H")
    assert sent == "\x1b[H\x1b[32mxy z\x1b[m\r"


def test_the_style_of_columns_is_sent_once() -> None:
    rows = "".join(
        f"\x1b[{y};1H\x1b[38;2;200;208;218mname\x1b[0m\x1b[38;2;232;183;98mwaiting\x1b[0m\n"
        for y in range(1, HEIGHT + 1)
    )
    sent = new_cells().reduce(f"{rows}\x1b[1;1H")
    assert sent.count("38;2;200;208;218") == sent.count("38;2;232;183;98") == 1


@pytest.mark.parametrize("sequence", ["\x1b[?25l", "\x1b[?2026$p", "\x1b[>1u", "\x1b]52;c;eA==\a"])
def test_output_that_paints_nothing_passes_through(sequence: str) -> None:
    cells, data = new_cells(), painting(random.Random(1))
    cells.reduce(data)
    assert cells.reduce(sequence) == sequence
    assert cells.reduce(data) == ""


@pytest.mark.parametrize(
    "unknown",
    [
        "\x1b[?1049h", "\x1b[2J", "\x1bPtmux;\x1b\x1b]52;c;eA==\a\x1b\\", "text", "\x1b[1;1Ha\tb",
        "\x1b[53mover\x1b[0m", "\x1b[38;9mx\x1b[m", "\x1b[1;1H\x1b[31mno end of the style",
        f"\x1b[1;1H{'x' * (WIDTH + 1)}", f"\x1b[{HEIGHT + 1};1Hx",
    ],
)  # fmt: skip
def test_after_other_output_no_cell_is_known(unknown: str) -> None:
    cells, data = new_cells(), painting(random.Random(1))
    first = cells.reduce(data)
    sent = cells.reduce(unknown)
    assert sent == unknown + ("\x1b[m" if re.search(r"\x1b\[[0-9;]*m", unknown) else "")
    assert cells.reduce(data) == first


def test_after_a_new_size_no_cell_is_known() -> None:
    cells, data = new_cells(), "\x1b[1;1Hab\x1b[1;1H"
    first = cells.reduce(data)
    cells.resize(WIDTH + 2, HEIGHT)
    assert cells.reduce(data) == first
    cells.forget()
    assert cells.reduce(data) == first


def test_a_wide_character_without_its_half_is_sent_again() -> None:
    cells = new_cells()
    whole = "\x1b[1;1H線線\x1b[1;1H"
    first = cells.reduce(whole)
    for half in ("\x1b[1;2Hx\x1b[1;1H", "\x1b[1;3Hx\x1b[1;1H", "\x1b[1;1Hx\x1b[1;1H"):
        assert cells.reduce(half)
        assert "線" in cells.reduce(whole)
    assert first.count("線") == 2
