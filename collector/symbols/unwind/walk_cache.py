"""Earlier walks, found again by what they read of the stack.

A walk depends only on its first program counter and on the words that it reads. The same words lead
to the same callers. The address of the stack does not matter unless the walk queried it. So a walk
of one thread of a pool serves the others.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from locktop.collector.symbols.unwind.cursor import Unwound
from locktop.collector.symbols.unwind.stack_memory import StackAnswers, StackQuery

_WORD = struct.Struct("=Q")
_word_at = _WORD.unpack_from
#: Forks, and frames of walks; a fork takes some 360 bytes.
MAX_KEPT = 1 << 17


class _Fork(NamedTuple):
    """A query, and for each answer what comes next."""

    query: StackQuery
    ways: dict[int, _Fork | Unwound]


class WalkCache:
    """The walks of one process, valid while its code lies where it does."""

    def __init__(self, max_kept: int = MAX_KEPT) -> None:
        self._max_kept = max_kept
        self._first: dict[int, _Fork | Unwound] = {}  # by pc
        self._kept = 0

    def __contains__(self, pc: int) -> bool:
        """Tell whether a walk is kept that begins at ``pc``."""
        return pc in self._first

    def keep(self, pc: int, answers: StackAnswers, unwound: Unwound) -> None:
        """Keep the result of a walk that began at ``pc`` and got these answers."""
        if self._kept >= self._max_kept:
            self._first, self._kept = {}, 0
        ways, answer = self._first, pc
        for query, next_answer in answers:
            fork = ways.get(answer)
            if not isinstance(fork, _Fork) or fork.query != query:
                fork = ways[answer] = _Fork(query, {})
                self._kept += 1
            ways, answer = fork.ways, next_answer
        self._kept += len(unwound.addresses)
        ways[answer] = unwound

    def find(self, pc: int, sp: int, stack: bytes) -> Unwound | int | None:
        """Return the walk that leads from ``pc`` over a stack with these bytes from ``sp`` on.

        Returns:
            The walk; the least number of bytes to decide, if ``stack`` is too short;
            None if no walk with these words is kept.
        """
        way = self._first.get(pc)
        last = len(stack) - _WORD.size
        while isinstance(way, _Fork):
            (distance, is_frame), ways = way
            if distance is None:
                way = ways.get(sp)
            elif distance > last:
                return distance + _WORD.size
            else:
                (word,) = _word_at(stack, distance)
                way = ways.get(word - sp if is_frame else word)
        return way
