"""A thread's stack: read in a few large pieces, asked for in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from locktop.collector.unwind.truncation import Cut

_PAGE = 4096  # no processor's are smaller
_FIRST, _LATER = 4 * _PAGE, 16 * _PAGE
_WIDEST = 16 * _PAGE
_WORD = 8

#: Returns the bytes at an address, at most so many; fewer where there are no more.
Read = Callable[[int, int], bytes]


class Asked(NamedTuple):
    """What a walk asked for."""

    #: How far the word lies from where the stack pointer was at first; None: asked was where that
    #: is.
    distance: int | None
    #: Of the answer only how far it is from there leads the way.
    is_frame: bool


#: All of it with the answers, each as a number.
Told = list[tuple[Asked, int]]


def rest_of_page(address: int) -> int:
    """Return how many bytes from an address on can be read if the first one can."""
    return _PAGE - address % _PAGE


class Copy(NamedTuple):
    """What a thread had at one moment."""

    registers: dict[int, int]  # by DWARF's numbers
    stack: bytes  # from the stack pointer on
    sp: int


class Stack:
    """What was read once stays as it was then."""

    def __init__(self, sp: int, read: Read) -> None:
        self._sp = sp
        self._read = read
        self._pieces: list[tuple[int, bytes]] = []
        #: What all that was told until now depends on; None where that is more than some words.
        self.told: Told | None = []
        #: Of all that was asked for; 0 where nothing was.
        self.end = 0

    @classmethod
    def copied(cls, begin: int, copy: bytes) -> Stack:
        """Return the stack of which there is a copy and no more."""
        stack = cls(begin, lambda address, size: b"")
        stack._pieces.append((begin, copy))
        return stack

    def load(self, address: int, size: int = _WORD) -> int:
        """Return the number at an address; raises Cut where it cannot be read."""
        word = self._loaded(address, size)
        self._note(address, size, word, is_frame=False)
        return word

    def frame(self, address: int) -> int:
        """Return the word at an address, of which nothing matters but how far it is from the stack
        pointer; raises Cut where it cannot be read."""
        word = self._loaded(address, _WORD)
        self._note(address, _WORD, word - self._sp, is_frame=True)
        return word

    def pin(self) -> None:
        """From here on it matters where the stack is."""
        if self.told is not None:
            self.told.append((Asked(None, is_frame=False), self._sp))

    def _note(self, address: int, size: int, answer: int, *, is_frame: bool) -> None:
        distance = address - self._sp
        if size != _WORD or not 0 <= distance <= _WIDEST - _WORD:
            self.told = None
        elif self.told is not None:
            self.told.append((Asked(distance, is_frame), answer))

    def _loaded(self, address: int, size: int) -> int:
        self.end = max(self.end, address + size)
        for begin, piece in reversed(self._pieces):
            inside = address - begin
            if inside >= 0 and inside + size <= len(piece):
                return int.from_bytes(piece[inside : inside + size], "little")
        begin = address - address % _PAGE
        piece = self._read(begin, _LATER if self._pieces else _FIRST)
        inside = address - begin
        if inside + size > len(piece):
            self.told = None
            raise Cut("memory that cannot be read")
        self._pieces.append((begin, piece))
        return int.from_bytes(piece[inside : inside + size], "little")
