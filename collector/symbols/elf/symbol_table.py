"""Functions and data objects by address, from an ELF file's symbol tables.

A large program has half a million symbols, of which a few are queried. The table stays in columns,
and work on all rows is done by calls into C (docs/internals/adr/0003).
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections.abc import Mapping
from itertools import compress

from msgspec import Struct

_STT_OBJECT, _STT_FUNC, _STT_COMMON, _STT_GNU_IFUNC = 1, 2, 5, 10
FUNCTIONS = frozenset({_STT_FUNC, _STT_GNU_IFUNC})
#: Functions that lie at the address of their symbol: not those of several versions.
PLAIN_FUNCTIONS = frozenset({_STT_FUNC})
OBJECTS = frozenset({_STT_OBJECT, _STT_COMMON})
_ROW_BITS = 32  # of a key, for the number of the symbol in its table
#: Symbols before an address that are checked for one that covers the address.
_MAX_BACK = 64
#: Symbols and texts of one name that are checked: each may take a walk over the whole table.
_MAX_OF_A_NAME = 32
#: Bytes of a name; more than any compiler writes.
_MAX_NAME = 64 << 10


class Symbol(Struct, frozen=True):
    """A function or an object at a link-time address."""

    address: int
    size: int
    name: str  # as in the file: mangled


class SymbolTable:
    """One symbol table.

    Args:
        entries: The bytes of the table.
        strings: The bytes of its string table.
        ends: The address behind each loaded section, by the section's number.
        is_64_bit: Whether the entries are of the 64-bit form.
        little_endian: Whether numbers begin with their lowest byte.
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

    def address_of(self, name: str, kinds: frozenset[int] = FUNCTIONS) -> int | None:
        """Return the address of the symbol of that name; None if it is not defined here.

        Args:
            name: of a function or an object.
            kinds: STT_* numbers.
        """
        wanted = name.encode() + b"\0"
        offset = row = -1
        for _ in range(_MAX_OF_A_NAME):
            # The end of a longer name may serve as the name of another symbol.
            if row < 0:
                offset = self._strings.find(wanted, offset + 1)
            if offset < 0:
                break
            row = _index(self._names, offset, row + 1)
            if row >= 0 and self.is_defined(row) and self._infos[row] & 0xF in kinds:
                return self._starts[row]
        return None

    def select(self, kinds: frozenset[int], reach: bool = False) -> Symbols:
        """Return the defined symbols of some kinds.

        Args:
            kinds: STT_* numbers.
            reach: Whether a symbol without a size (assembler) reaches to the next one.
        """
        wanted = self._infos.translate(bytes((info & 0xF) in kinds for info in range(256)))
        starts, rows = compress(self._starts, wanted), compress(range(len(wanted)), wanted)
        return Symbols(
            self, [start << _ROW_BITS | row for start, row in zip(starts, rows, strict=True)], reach
        )

    def is_defined(self, row: int) -> bool:
        """Tell whether a symbol is in this file, not only imported from another."""
        return self._sections[row] != 0

    def start(self, row: int) -> int:
        """Return a symbol's address."""
        return self._starts[row]

    def end(self, row: int) -> int:
        """Return the address behind a symbol; behind its section if the symbol has no size."""
        size = self._sizes[row]
        start = self._starts[row]
        return start + size if size else self._ends.get(self._sections[row], start)

    def size(self, row: int) -> int:
        """Return a symbol's size in bytes, 0 if unknown."""
        return self._sizes[row]

    def is_local(self, row: int) -> bool:
        """Tell whether a symbol is local to its source file."""
        return self._infos[row] >> 4 == 0

    def name(self, row: int) -> str:
        """Return a symbol's name, without the version that some tables append."""
        start = self._names[row]
        max_count = start + _MAX_NAME
        end = self._strings.find(b"\0", start, max_count)
        name = self._strings[start : end if end >= 0 else max_count].decode("utf-8", "replace")
        version = name.find("@", 1)
        return name if version < 0 else name[:version]


def _index(values: array[int], value: int, begin: int) -> int:
    try:
        return values.index(value, begin)
    except ValueError:
        return -1


class Symbols:
    """Some of a table's symbols, by address.

    Args:
        table: The table.
        keys: The symbols, each as address and row in one number.
        reach: As in `SymbolTable.select()`.
    """

    def __init__(self, table: SymbolTable, keys: list[int], reach: bool) -> None:
        keys.sort()  # numbers sort several times faster than pairs
        self._table = table
        self._keys = keys
        self._reach = reach

    def find(self, address: int) -> Symbol | None:
        """Return the symbol that covers an address, of several the one that begins last."""
        behind = bisect_left(self._keys, address + 1 << _ROW_BITS)
        nearest = -1
        covering: list[int] = []
        for key in reversed(self._keys[max(0, behind - _MAX_BACK) : behind]):
            start, row = key >> _ROW_BITS, key & (1 << _ROW_BITS) - 1
            if covering and start != self._table.start(covering[0]):
                break
            if not self._table.is_defined(row):
                continue
            if nearest < 0:
                nearest = start
            if self._covers(row, address, start == nearest):
                covering.append(row)
        if not covering:
            return None
        best = min(covering, key=self._preference)
        return Symbol(self._table.start(best), self._table.size(best), self._table.name(best))

    def _covers(self, row: int, address: int, nearest: bool) -> bool:
        if address == self._table.start(row):
            return True
        sized = self._table.size(row) > 0
        return (sized or (self._reach and nearest)) and address < self._table.end(row)

    def _preference(self, row: int) -> tuple[int, bool, int, int, str]:
        """Return a key that sorts the best-known of several names for one address first."""
        name = self._table.name(row)
        underscores = len(name) - len(name.lstrip("_"))
        return -self._table.size(row), self._table.is_local(row), underscores, len(name), name
