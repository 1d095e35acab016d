"""Walks that were made before, known again by what led their way.

A walk depends on where it begins and on what it is told on its way, and on nothing else: one that
is told the same goes the same way. Where the stack itself lies does not matter, unless it was asked
for, so what was found for one thread of a pool holds for the others.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from locktop.collector.unwind.cursor import Unwound
from locktop.collector.unwind.stack_memory import Told

_WORD = struct.Struct("=Q")
_word_at = _WORD.unpack_from
#: Forks, and frames of walks; a fork takes some 360 bytes.
_MAX_KEPT = 1 << 17


class _Fork(NamedTuple):
    """Where the way depends on what is told."""

    distance: int | None  # as in Asked
    is_frame: bool
    ways: dict[int, _Fork | Unwound]  # by the answer


class Walks:
    """Of one process, as long as its code lies where it does."""

    def __init__(self) -> None:
        self._first: dict[int, _Fork | Unwound] = {}  # by pc
        self._kept = 0

    def __contains__(self, pc: int) -> bool:
        """Tell whether a walk was made that began there."""
        return pc in self._first

    def keep(self, pc: int, told: Told, found: Unwound) -> None:
        """Remember where a walk led that began at ``pc`` and was told this."""
        if self._kept >= _MAX_KEPT:
            self._first, self._kept = {}, 0
        ways, answer = self._first, pc
        for asked, next_answer in told:
            fork = ways.get(answer)
            if not isinstance(fork, _Fork) or fork[:2] != asked:
                fork = ways[answer] = _Fork(*asked, {})
                self._kept += 1
            ways, answer = fork.ways, next_answer
        self._kept += len(found.addresses)
        ways[answer] = found

    def find(self, pc: int, sp: int, stack: bytes) -> Unwound | int | None:
        """Return where a walk leads that begins at ``pc``, on a stack that has these bytes from
        ``sp`` on; where they are too few to tell, how many it takes at least; None where none was
        made that was told the same."""
        way = self._first.get(pc)
        last = len(stack) - _WORD.size
        while isinstance(way, _Fork):
            distance, is_frame, ways = way
            if distance is None:
                way = ways.get(sp)
            elif distance > last:
                return distance + _WORD.size
            else:
                (word,) = _word_at(stack, distance)
                way = ways.get(word - sp if is_frame else word)
        return way
