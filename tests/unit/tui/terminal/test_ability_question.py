"""The answer to the question about the abilities of the terminal."""

from __future__ import annotations

import re

import pytest
from support.emulator import Emulator

from locktop.tui.terminal.ability_question import QUESTION, answered_abilities
from locktop.tui.terminal.description import Abilities

KNOWN = Abilities(erases=True, moves_rows=True)


@pytest.mark.parametrize("repeats", [True, False])
def test_a_terminal_answers(repeats: bool) -> None:
    emulator = Emulator(40, 10, repeats)
    emulator.feed(b"a\r\nb\r\nc")
    emulator.feed(QUESTION.encode())
    answer = re.fullmatch(r"\x1b\[(\d+);(\d+)R", emulator.take_answers())
    assert answer is not None
    row, column = (int(number) - 1 for number in answer.groups())
    assert answered_abilities(KNOWN, row, column) == Abilities(
        erases=True, moves_rows=True, repeats=repeats, feeds=True
    )
    assert emulator.text.strip() == "a", "the question leaves nothing on the screen"


@pytest.mark.parametrize(
    ("row", "column", "repeats", "feeds"),
    [
        (1, 10, True, False),  # VT does nothing
        (2, 1, False, True),
        (1, 1, False, False),
        (2, 20, False, True),  # the line has two columns
    ],
)
def test_the_position_tells_each_ability(row: int, column: int, repeats: bool, feeds: bool) -> None:
    found = answered_abilities(Abilities(), row, column)
    assert (found.repeats, found.feeds) == (repeats, feeds)


def test_f3_with_a_modifier_is_no_answer() -> None:
    """This key is ESC [ 1 ; 5 R."""
    assert answered_abilities(KNOWN, 0, 4) == KNOWN
