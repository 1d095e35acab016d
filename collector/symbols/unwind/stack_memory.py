"""A thread's stack: read in a few large pieces, queried word by word; and why a stack is cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

_PAGE = 4096  # no processor has smaller pages
_FIRST_READ, _LATER_READ = 4 * _PAGE, 16 * _PAGE
_MAX_DISTANCE = 16 * _PAGE
_WORD = 8


class StackCut(Exception):
    """Why a stack cannot be followed further, in words for the user."""


class UnknownRegister(StackCut):
    """A frame depends on a register whose value is not known."""

    def __init__(self, register: int) -> None:
        super().__init__(f"a frame counts from a register that is not known ({register})")
        self.register = register


#: Returns up to so many bytes at an address; fewer where no more can be read.
Read = Callable[[int, int], bytes]


class StackQuery(NamedTuple):
    """A question of a walk about a stack."""

    #: The distance in bytes of a word from the first stack pointer. None: the query is for the
    #: address of the stack itself.
    distance: int | None
    #: Whether only the word's own distance from the first stack pointer matters.
    is_frame: bool


#: All queries of a walk, in order, each with the answer as a number.
StackAnswers = list[tuple[StackQuery, int]]


def rest_of_page(address: int) -> int:
    """Return how many bytes from an address on can be read if the first byte can."""
    return _PAGE - address % _PAGE


class StackCopy(NamedTuple):
    """Registers and stack of a thread at one moment."""

    registers: dict[int, int]  # by DWARF's numbers
    stack: bytes  # from the stack pointer on
    sp: int

    def reader(self, read: Read) -> Read:
        """Return a function that reads the copy where it can, and else calls ``read``."""

        def read_copy(address: int, size: int) -> bytes:
            inside = address - self.sp
            if inside >= 0 and inside + size <= len(self.stack):
                return self.stack[inside : inside + size]
            return read(address, size)

        return read_copy


class StackMemory:
    """The words of one stack; each part is read once, and stays as it was then.

    Attributes:
        answers: What the walk depends on so far; None if that is more than some words.
        end: The address behind the last byte that was queried; 0 if there was no query.
    """

    def __init__(self, sp: int, read: Read) -> None:
        self._sp = sp
        self._read = read
        self._pieces: list[tuple[int, bytes]] = []
        self.answers: StackAnswers | None = []
        self.end = 0

    @classmethod
    def from_copy(cls, begin: int, copy: bytes) -> StackMemory:
        """Return the stack of which a copy exists, and nothing else can be read."""
        stack = cls(begin, lambda address, size: b"")
        stack._pieces.append((begin, copy))
        return stack

    def load(self, address: int, size: int = _WORD) -> int:
        """Return the number of ``size`` bytes at an address.

        Raises:
            StackCut: The address cannot be read.
        """
        word = self._load_number(address, size)
        self._note(address, size, word, is_frame=False)
        return word

    def frame(self, address: int) -> int:
        """Return the word at an address, if only its distance from the stack pointer matters.

        Raises:
            StackCut: The address cannot be read.
        """
        word = self._load_number(address, _WORD)
        self._note(address, _WORD, word - self._sp, is_frame=True)
        return word

    def pin(self) -> None:
        """Note that the walk depends on where the stack is."""
        if self.answers is not None:
            self.answers.append((StackQuery(None, is_frame=False), self._sp))

    def _note(self, address: int, size: int, answer: int, *, is_frame: bool) -> None:
        distance = address - self._sp
        if size != _WORD or not 0 <= distance <= _MAX_DISTANCE - _WORD:
            self.answers = None
        elif self.answers is not None:
            self.answers.append((StackQuery(distance, is_frame), answer))

    def _load_number(self, address: int, size: int) -> int:
        self.end = max(self.end, address + size)
        for begin, piece in reversed(self._pieces):
            inside = address - begin
            if inside >= 0 and inside + size <= len(piece):
                return int.from_bytes(piece[inside : inside + size], "little")
        begin = address - address % _PAGE
        piece = self._read(begin, _LATER_READ if self._pieces else _FIRST_READ)
        inside = address - begin
        if inside + size > len(piece):
            self.answers = None
            raise StackCut("memory that cannot be read")
        self._pieces.append((begin, piece))
        return int.from_bytes(piece[inside : inside + size], "little")
