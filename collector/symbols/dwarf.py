"""Source lines and inlined functions out of DWARF 4 and 5, one compilation unit at a time."""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property

from locktop.collector.symbols import dwarf_entries as dw
from locktop.collector.symbols import unit_index
from locktop.collector.symbols.debug_sections import DebugSections
from locktop.collector.symbols.dwarf_entries import Reference
from locktop.collector.symbols.dwarf_functions import Functions, function_name, read_functions
from locktop.collector.symbols.dwarf_lines import Lines, read_lines
from locktop.collector.symbols.dwarf_units import TYPE_UNITS, Unit, Units
from locktop.collector.symbols.elf import ElfFile
from locktop.collector.symbols.unit_index import Place, UnitIndex

_MOST_LISTED = 256 << 20  # bytes
_MOST_INDEXED = 64 << 20  # bytes of indexes kept in memory for one file
_PADDING = 16  # bytes between functions that are nobody's

SymbolAt = Callable[[int], str]
_Row = tuple[int, int, int]  # low, high, offset of the unit


class Dwarf:
    """The DWARF of one file. Where it is damaged less is known, and ``damaged`` is set."""

    def __init__(
        self, file: ElfFile, symbol_at: SymbolAt, supplement: ElfFile | None = None
    ) -> None:
        """``symbol_at`` gives the name of the function that begins at an address, "" for none;
        ``supplement`` is the file that several programs' debug files share (made by dwz)."""
        shared = Units(DebugSections(supplement)) if supplement is not None else None
        self._units = Units(DebugSections(file), shared)
        self._symbol_at = symbol_at
        self._indexes: OrderedDict[int, UnitIndex] = OrderedDict()
        self._indexed = 0
        self.damaged = False

    def find(self, address: int) -> tuple[Place, ...]:
        """Return the places of a link-time address, innermost first; () where none is known."""
        with self._bearing_damage():
            unit = self._unit_of(address)
            return self._index(unit).find(address) if unit is not None else ()
        return ()

    # ---- which unit ----

    def _unit_of(self, address: int) -> int | None:
        lows, highs, offsets = self.rows
        at = bisect_right(lows, address) - 1
        return offsets[at] if at >= 0 and address < highs[at] else None

    @cached_property
    def rows(self) -> tuple[array[int], array[int], array[int]]:
        """Where the units' code lies, in order of address."""
        rows: list[_Row] = []
        with self._bearing_damage():
            rows += _listed_ranges(self._units.sections)
        with self._bearing_damage():
            rows += self._ranges_of_units({row[2] for row in rows})
        lows, highs, offsets = array("Q"), array("Q"), array("Q")
        for low, high, unit in sorted(rows):
            if lows and offsets[-1] == unit and low - highs[-1] < _PADDING:
                highs[-1] = max(high, highs[-1])
            else:
                lows.append(low)
                highs.append(high)
                offsets.append(unit)
        return lows, highs, offsets

    def _ranges_of_units(self, listed: set[int]) -> Iterator[_Row]:
        """Of those that are not listed: clang lists none."""
        for unit in self._units:
            if unit.offset not in listed and unit.type not in TYPE_UNITS:
                with self._bearing_damage():
                    yield from ((*r, unit.offset) for r in unit.ranges(unit.top))

    # ---- what is in it ----

    def _index(self, offset: int) -> UnitIndex:
        index = self._indexes.get(offset)
        if index is None:
            index = self._indexes[offset] = self._build(offset)
            self._indexed += index.size
            while self._indexed > _MOST_INDEXED and len(self._indexes) > 1:
                self._indexed -= self._indexes.popitem(last=False)[1].size
        self._indexes.move_to_end(offset)
        return index

    def _build(self, offset: int) -> UnitIndex:
        lines, functions, names = Lines.none(), Functions(), list[str]()
        with self._bearing_damage():
            unit = Unit(self._units, offset)
            if dw.STMT_LIST in unit.top:
                lines = read_lines(unit.sections, int(unit.top[dw.STMT_LIST][1]))
            found = read_functions(unit)
            functions, names = found, self._names(unit, found)
        return unit_index.build(lines, functions, names)

    def _names(self, unit: Unit, functions: Functions) -> list[str]:
        """What each function is called: as its symbol, or as DWARF says where it was inlined."""
        known: dict[Reference, str] = {}
        names = []
        begins = {function: low for low, _, function in reversed(functions.ranges)}
        for number, (origin, parent) in enumerate(
            zip(functions.origins, functions.parents, strict=True)
        ):
            name = self._symbol_at(begins[number]) if parent < 0 and number in begins else ""
            if not name and number in functions.with_code:
                if origin not in known:
                    known[origin] = self._name(unit, origin)
                name = known[origin]
            names.append(name)
        return names

    def _name(self, unit: Unit, origin: Reference) -> str:
        with self._bearing_damage():
            return function_name(unit, origin).decode("utf-8", "replace")
        return ""

    @contextmanager
    def _bearing_damage(self) -> Iterator[None]:
        try:
            yield
        except Exception:  # a stranger's file can lead to nearly any
            self.damaged = True


def _listed_ranges(sections: DebugSections) -> Iterator[_Row]:
    """The ranges of .debug_aranges, where a compiler wrote one."""
    size = sections.size("aranges")
    if size > _MOST_LISTED:
        raise ValueError(".debug_aranges is larger than is sane")
    data, at = sections.read("aranges", 0, size) if size else b"", 0
    while at + 12 <= len(data):
        begin, (size,) = at, struct.unpack_from("<I", data, at)
        wide = size == 0xFFFFFFFF
        if wide:
            (size,) = struct.unpack_from("<Q", data, at + 4)
        at += 14 if wide else 6  # size, version
        (unit,) = struct.unpack_from("<Q" if wide else "<I", data, at)
        at += 8 if wide else 4
        width = data[at]
        end = begin + size + (12 if wide else 4)
        if width not in (4, 8) or end > len(data):
            raise ValueError(".debug_aranges is damaged")
        pair = struct.Struct("<QQ" if width == 8 else "<II")
        at += 2
        at += -(at - begin) % pair.size  # the pairs are aligned
        part = data[at : at + (end - at) // pair.size * pair.size] if end > at else b""
        for low, length in pair.iter_unpack(part):
            if low and length:
                yield low, low + length, unit
        at = end
