"""A thread's stack: read in a few large pieces, asked for in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from locktop.collector.unwind.cut import Cut

_PAGE = 4096
_FIRST, _LATER = 4 * _PAGE, 16 * _PAGE


class Copy(NamedTuple):
    """What a thread had at one moment."""

    registers: dict[int, int]  # by DWARF's numbers
    stack: bytes  # from the stack pointer on
    sp: int


class Stack:
    """What was read once stays as it was then."""

    def __init__(self, read: Callable[[int, int], bytes]) -> None:
        self._read = read
        self._pieces: list[tuple[int, bytes]] = []
        self.end = 0  # of all that was loaded

    @classmethod
    def copied(cls, begin: int, copy: bytes) -> Stack:
        """Return the stack of which there is a copy and no more."""
        stack = cls(lambda address, size: b"")
        stack._pieces.append((begin, copy))
        return stack

    def load(self, address: int, size: int = 8) -> int:
        """Return the number at an address; raises Cut where it cannot be read."""
        self.end = max(self.end, address + size)
        for begin, piece in reversed(self._pieces):
            inside = address - begin
            if inside >= 0 and inside + size <= len(piece):
                return int.from_bytes(piece[inside : inside + size], "little")
        begin = address - address % _PAGE
        piece = self._read(begin, _LATER if self._pieces else _FIRST)
        inside = address - begin
        if inside + size > len(piece):
            raise Cut("memory that cannot be read")
        self._pieces.append((begin, piece))
        return int.from_bytes(piece[inside : inside + size], "little")
