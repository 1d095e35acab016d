"""The answer to the question about the abilities of the terminal."""

from __future__ import annotations

import re

import pytest
from support.emulator import Emulator, Kind

from locktop.tui.terminal.ability_question import QUESTION, answered_abilities
from locktop.tui.terminal.description import Abilities

KNOWN = Abilities(erases=True, moves_rows=True)


@pytest.mark.parametrize(
    ("kind", "repeats", "repeats_ascii"),
    [(Kind.XTERM, True, True), (Kind.TMUX_3_3, False, True), (Kind.MOSH, False, False)],
)
def test_a_terminal_answers(kind: Kind, repeats: bool, repeats_ascii: bool) -> None:
    emulator = Emulator(40, 10, kind)
    emulator.feed(b"a\r\nb\r\nc")
    emulator.feed(QUESTION.encode())
    answer = re.fullmatch(r"\x1b\[(\d+);(\d+)R", emulator.take_answers())
    assert answer is not None
    row, column = (int(number) - 1 for number in answer.groups())
    assert answered_abilities(KNOWN, row, column) == Abilities(
        erases=True, moves_rows=True, repeats=repeats, repeats_ascii=repeats_ascii, feeds=True
    )
    assert emulator.text.strip() == "a", "the question leaves nothing on the screen"


@pytest.mark.parametrize(
    ("row", "column", "repeats", "repeats_ascii", "feeds"),
    [
        (1, 15, True, True, False),  # VT does nothing
        (2, 2, False, False, True),
        (2, 6, False, True, True),
        (1, 2, False, False, False),
        (2, 25, False, False, True),  # the line has two columns
    ],
)
def test_the_position_tells_each_ability(
    row: int, column: int, repeats: bool, repeats_ascii: bool, feeds: bool
) -> None:
    found = answered_abilities(Abilities(), row, column)
    assert found == Abilities(repeats=repeats, repeats_ascii=repeats_ascii, feeds=feeds)


def test_f3_with_a_modifier_is_no_answer() -> None:
    """This key is ESC [ 1 ; 5 R."""
    assert answered_abilities(KNOWN, 0, 4) == KNOWN
