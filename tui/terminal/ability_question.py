"""A question that the terminal answers by its cursor: what the name in TERM does not tell.

tmux before 3.5, mosh and others repeat no character, or ASCII alone. Under each of them the name
may be xterm-256color, whose description has the ability.
"""

from __future__ import annotations

from msgspec.structs import replace

from locktop.tui.terminal.description import Abilities

#: The row of the question, from 1 on. In the first row, the answer might be the key F3.
_ROW = 2
_LINES = 9  # repetitions of a line
_LETTERS = 4  # repetitions of a letter
#: A line, a letter, a step down, and the question for the position. Then erase all.
QUESTION = f"\x1b[{_ROW}H─\x1b[{_LINES}bx\x1b[{_LETTERS}b\v\x1b[6n\x1b[{_ROW}H\x1b[J"
#: The columns of a terminal that repeats ASCII alone, and of one that repeats all. From 0 on.
_AFTER_ASCII = 2 + _LETTERS
_AFTER_ALL = _AFTER_ASCII + _LINES


def answered_abilities(abilities: Abilities, row: int, column: int) -> Abilities:
    """Return ``abilities`` with the abilities that a report of the cursor's position shows.

    Args:
        abilities: other abilities.
        row: from 0 on.
        column: from 0 on.
    """
    if row not in (_ROW - 1, _ROW):  # a key
        return abilities
    return replace(
        abilities,
        repeats=column == _AFTER_ALL,
        repeats_ascii=column in (_AFTER_ASCII, _AFTER_ALL),
        feeds=row == _ROW,
    )
