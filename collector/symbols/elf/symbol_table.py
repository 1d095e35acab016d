"""Functions and data objects by address, out of an ELF file's symbol tables.

A large program has half a million of them, of which a few are asked for: the table stays in
columns, and what is done to all of its rows is done by calls into C.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import compress

_STT_OBJECT, _STT_FUNC, _STT_COMMON, _STT_GNU_IFUNC = 1, 2, 5, 10
FUNCTIONS = frozenset({_STT_FUNC, _STT_GNU_IFUNC})
OBJECTS = frozenset({_STT_OBJECT, _STT_COMMON})
_ROW = 32  # bits for the number of a symbol in its table
#: How many symbols before an address are looked at for one that reaches over it.
_MAX_BACK = 64
#: Symbols and texts of one name that are looked at: each may take a walk over the whole table.
_MAX_OF_A_NAME = 32
#: Bytes of a name; more than any compiler writes.
_LONGEST_NAME = 64 << 10


@dataclass(frozen=True, slots=True)
class Symbol:
    """A function or an object at a link-time address."""

    address: int
    size: int
    name: str  # as in the file: mangled


class SymbolTable:
    """One symbol table (``entries``, of 64-bit form if ``is_64_bit``) with its strings.

    ``ends`` gives the address behind each section that is loaded, by the section's number.
    """

    def __init__(
        self,
        entries: bytes,
        strings: bytes,
        ends: Mapping[int, int],
        *,
        is_64_bit: bool,
        little_endian: bool,
    ) -> None:
        size = 24 if is_64_bit else 16
        entries = entries[: len(entries) - len(entries) % size]
        swapped = little_endian != (sys.byteorder == "little")

        def column(code: str, first: int) -> array[int]:
            values = array(code, entries)
            if swapped:
                values.byteswap()
            return values[first :: size // values.itemsize]

        self._names = column("I", 0)
        self._infos = entries[4::24] if is_64_bit else entries[12::16]
        self._sections = column("H", 3 if is_64_bit else 7)
        self._starts = column("Q", 1) if is_64_bit else column("I", 1)
        self._sizes = column("Q", 2) if is_64_bit else column("I", 2)
        self._strings = strings
        self._ends = ends

    def address_of(self, name: str) -> int | None:
        """Return the address of the function of that name; None if there is none here."""
        wanted = name.encode() + b"\0"
        at = row = -1
        for _ in range(_MAX_OF_A_NAME):
            # The end of a longer name may be the name of another symbol, too.
            if row < 0:
                at = self._strings.find(wanted, at + 1)
            if at < 0:
                break
            row = _index(self._names, at, row + 1)
            if row >= 0 and self.is_defined(row) and self._infos[row] & 0xF in FUNCTIONS:
                return self._starts[row]
        return None

    def select(self, kinds: frozenset[int], reach: bool = False) -> Symbols:
        """Return the defined symbols of some kinds.

        With ``reach`` one without a size (a function written in assembler) reaches to the next.
        """
        wanted = self._infos.translate(bytes((info & 0xF) in kinds for info in range(256)))
        starts, rows = compress(self._starts, wanted), compress(range(len(wanted)), wanted)
        return Symbols(
            self, [start << _ROW | row for start, row in zip(starts, rows, strict=True)], reach
        )

    def is_defined(self, row: int) -> bool:
        """Tell whether a symbol is in this file, not only wanted from another."""
        return self._sections[row] != 0

    def start(self, row: int) -> int:
        """Return a symbol's address."""
        return self._starts[row]

    def end(self, row: int) -> int:
        """Return the address behind a symbol, or, without a size, that behind its section."""
        size = self._sizes[row]
        start = self._starts[row]
        return start + size if size else self._ends.get(self._sections[row], start)

    def size(self, row: int) -> int:
        """Return a symbol's size in bytes, 0 if unknown."""
        return self._sizes[row]

    def is_local(self, row: int) -> bool:
        """Tell whether a symbol is its source file's own."""
        return self._infos[row] >> 4 == 0

    def name(self, row: int) -> str:
        """Return a symbol's name, without the version that some tables add to it."""
        at = self._names[row]
        most = at + _LONGEST_NAME
        end = self._strings.find(b"\0", at, most)
        name = self._strings[at : end if end >= 0 else most].decode("utf-8", "replace")
        version = name.find("@", 1)
        return name if version < 0 else name[:version]


def _index(values: array[int], value: int, begin: int) -> int:
    try:
        return values.index(value, begin)
    except ValueError:
        return -1


class Symbols:
    """Some of a table's symbols, by address: ``keys`` are addresses and rows in one number."""

    def __init__(self, table: SymbolTable, keys: list[int], reach: bool) -> None:
        keys.sort()  # of numbers: several times as quick as of pairs
        self._table = table
        self._keys = keys
        self._reach = reach

    def find(self, address: int) -> Symbol | None:
        """Return the symbol that covers the address: of several the one that begins last."""
        behind = bisect_left(self._keys, address + 1 << _ROW)
        nearest = -1
        found: list[int] = []
        for key in reversed(self._keys[max(0, behind - _MAX_BACK) : behind]):
            start, row = key >> _ROW, key & (1 << _ROW) - 1
            if found and start != self._table.start(found[0]):
                break
            if not self._table.is_defined(row):
                continue
            if nearest < 0:
                nearest = start
            if self._covers(row, address, start == nearest):
                found.append(row)
        if not found:
            return None
        best = min(found, key=self._worth)
        return Symbol(self._table.start(best), self._table.size(best), self._table.name(best))

    def _covers(self, row: int, address: int, nearest: bool) -> bool:
        if address == self._table.start(row):
            return True
        sized = self._table.size(row) > 0
        return (sized or (self._reach and nearest)) and address < self._table.end(row)

    def _worth(self, row: int) -> tuple[int, bool, int, int, str]:
        """Of several names for the same place the one that its readers know comes first."""
        name = self._table.name(row)
        underscores = len(name) - len(name.lstrip("_"))
        return -self._table.size(row), self._table.is_local(row), underscores, len(name), name
