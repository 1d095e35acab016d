"""A thread's stack: read in a few large pieces, asked for in words."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from locktop.collector.unwind.cut import Cut

_PAGE = 4096
_FIRST, _LATER = 4 * _PAGE, 16 * _PAGE
_WIDEST = 16 * _PAGE

#: Returns the bytes at an address, at most so many; fewer where there are no more.
Read = Callable[[int, int], bytes]


class Words(NamedTuple):
    """Some words of a stack."""

    begin: int  # address
    layout: struct.Struct
    values: tuple[bytes, ...]

    def are_there(self, read: Read) -> bool:
        """Tell whether all of them are as they were."""
        return self.are_in(read(self.begin, self.layout.size))

    def are_in(self, data: bytes) -> bool:
        """Tell whether all of them are as they were in what was read from ``begin`` on."""
        return len(data) == self.layout.size and self.layout.unpack(data) == self.values


class Copy(NamedTuple):
    """What a thread had at one moment."""

    registers: dict[int, int]  # by DWARF's numbers
    stack: bytes  # from the stack pointer on
    sp: int


class Stack:
    """What was read once stays as it was then."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._pieces: list[tuple[int, bytes]] = []
        #: What was asked for until now, by address and size; None where it could not be read.
        self._words: dict[tuple[int, int], int | None] = {}

    @classmethod
    def copied(cls, begin: int, copy: bytes) -> Stack:
        """Return the stack of which there is a copy and no more."""
        stack = cls(lambda address, size: b"")
        stack._pieces.append((begin, copy))
        return stack

    def load(self, address: int, size: int = 8) -> int:
        """Return the number at an address; raises Cut where it cannot be read."""
        word = self._words[address, size] = self._loaded(address, size)
        if word is None:
            raise Cut("memory that cannot be read")
        return word

    @property
    def end(self) -> int:
        """Of all that was asked for; 0 where nothing was."""
        return max((address + size for address, size in self._words), default=0)

    def words(self) -> Words | None:
        """Return all that was asked for until now; None where that is too much, or where something
        could not be read."""
        begin = at = min((address for address, _ in self._words), default=0)
        layout, values = ["="], []
        for (address, size), word in sorted(self._words.items(), key=lambda one: one[0]):
            if word is None or address < at or address + size > begin + _WIDEST:
                return None
            layout.append(f"{address - at}x{size}s")
            values.append(word.to_bytes(size, "little"))
            at = address + size
        return Words(begin, struct.Struct("".join(layout)), tuple(values))

    def _loaded(self, address: int, size: int) -> int | None:
        for begin, piece in reversed(self._pieces):
            inside = address - begin
            if inside >= 0 and inside + size <= len(piece):
                return int.from_bytes(piece[inside : inside + size], "little")
        begin = address - address % _PAGE
        piece = self._read(begin, _LATER if self._pieces else _FIRST)
        inside = address - begin
        if inside + size > len(piece):
            return None
        self._pieces.append((begin, piece))
        return int.from_bytes(piece[inside : inside + size], "little")
