"""Source lines and inlined functions out of DWARF 4 and 5, one compilation unit at a time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from threading import Lock
from typing import Protocol

import msgpack

from locktop.collector.symbols.dwarf import abbrevs as dw
from locktop.collector.symbols.dwarf import unit_index
from locktop.collector.symbols.dwarf.abbrevs import Reference
from locktop.collector.symbols.dwarf.aranges import (
    UnitRange,
    UnitRanges,
    listed_ranges,
    unit_ranges,
)
from locktop.collector.symbols.dwarf.functions import (
    Functions,
    function_name,
    lacks_type,
    read_functions,
)
from locktop.collector.symbols.dwarf.line_program import Lines, read_lines
from locktop.collector.symbols.dwarf.sections import DebugSections
from locktop.collector.symbols.dwarf.split import SplitFiles
from locktop.collector.symbols.dwarf.unit_index import SourceLocation, UnitIndex
from locktop.collector.symbols.dwarf.units import TYPE_UNITS, CompileUnit, Units
from locktop.collector.symbols.dwarf.variables import Variables, part_at
from locktop.collector.symbols.elf.file import ElfFile

_MAX_INDEXED = 64 << 20  # bytes of indexes in memory for one file

SymbolAt = Callable[[int], str]


class StoredResults(Protocol):
    """Results about one file, stored by other runs."""

    def get(self, key: str) -> bytes | None:
        """Return a result; None if there is none."""

    def put(self, key: str, data: bytes) -> None:
        """Store a result."""


class Dwarf:
    """The DWARF of one file. Of damaged DWARF less is known.

    Args:
        file: The file.
        symbol_at: Returns the name of the function that begins at an address; "" for none.
        supplement: The file that several debug files share (made by dwz).
        stored: The results of other runs.
        split: Finds debug information that was left beside the program.

    Attributes:
        damaged: Whether a part could not be read.
        missing: The name of a file with a part of the DWARF, if the file is not here.
    """

    def __init__(
        self,
        file: ElfFile,
        symbol_at: SymbolAt,
        supplement: ElfFile | None = None,
        stored: StoredResults | None = None,
        split: SplitFiles | None = None,
    ) -> None:
        shared = Units(DebugSections(supplement)) if supplement is not None else None
        self._units = Units(DebugSections(file), shared)
        self._symbol_at = symbol_at
        self._stored = stored
        self._split = split
        self._unit_ranges: UnitRanges | None = None
        self._indexes: OrderedDict[int, UnitIndex] = OrderedDict()
        self._indexed = 0
        # Each process that has the file mapped has a thread for names.
        self._lock = Lock()
        self.damaged = False
        self.missing = ""

    def find(self, address: int) -> tuple[SourceLocation, ...]:
        """Return the source locations of a link-time address, innermost first; () if unknown."""
        with self._lock, self._tolerate_damage():
            unit = self.unit_ranges().find(address)
            return self._index(unit).find(address) if unit is not None else ()
        return ()

    def find_stored(self, address: int) -> tuple[SourceLocation, ...]:
        """As `find()`, but () if that would have to read debug information first."""
        with self._lock, self._tolerate_damage():
            ranges = self._unit_ranges = self._unit_ranges or self._stored_ranges()
            unit = ranges.find(address) if ranges is not None else None
            index = self._stored_index(unit) if unit is not None else None
            return index.find(address) if index is not None else ()
        return ()

    def part_at(self, variable: int, offset: int) -> tuple[str, str] | None:
        """Return the source file of a variable, and which part of it lies at an offset.

        Args:
            variable: The link-time address where the variable begins.
            offset: In bytes.

        Returns:
            The file and the part: ".member[3]", "" for the whole. None if that is not known.
        """
        key = f"part {variable:x} {offset:x}"
        with self._lock, self._tolerate_damage():
            data = self._stored.get(key) if self._stored is not None else None
            with suppress(Exception):
                file, part = msgpack.unpackb(data or b"")
                return (str(file), str(part)) if file or part else None
            result = part_at(self._units, self._variables, variable, offset)
            self._store(key, lambda: msgpack.packb(result or ("", "")))
            return result
        return None

    def release_memory(self) -> None:
        """Release what was read, except the indexes: packed sections may be large."""
        with self._lock:
            self._units.release_memory()

    @cached_property
    def _variables(self) -> Variables:
        data = self._stored.get("variables") if self._stored is not None else None
        with suppress(ValueError):
            return Variables.unpack(data) if data is not None else self._search_variables()
        return self._search_variables()

    def _search_variables(self) -> Variables:
        variables = Variables.search(self._units.sections)
        self._store("variables", variables.pack)
        return variables

    # ---- which unit ----

    def unit_ranges(self) -> UnitRanges:
        """Return the address ranges of the units' code."""
        ranges = self._unit_ranges or self._stored_ranges()
        if ranges is None:
            ranges = unit_ranges(self._ranges())
            self._store("units", ranges.pack)
        self._unit_ranges = ranges
        return ranges

    def _stored_ranges(self) -> UnitRanges | None:
        data = self._stored.get("units") if self._stored is not None else None
        with suppress(ValueError):
            return UnitRanges.unpack(data) if data is not None else None
        return None

    def _ranges(self) -> list[UnitRange]:
        ranges: list[UnitRange] = []
        with self._tolerate_damage():
            ranges += listed_ranges(self._units.sections)
        with self._tolerate_damage():
            ranges += self._ranges_of_units({unit for _, _, unit in ranges})
        return ranges

    def _ranges_of_units(self, listed: set[int]) -> Iterator[UnitRange]:
        """Yield the ranges of units that .debug_aranges lacks: clang writes none."""
        for unit in self._units:
            if unit.offset not in listed and unit.type not in TYPE_UNITS:
                with self._tolerate_damage():
                    yield from ((*r, unit.offset) for r in unit.ranges(unit.top))

    # ---- what is in it ----

    def _index(self, offset: int) -> UnitIndex:
        index = self._stored_index(offset)
        if index is None:
            index = self._enter(offset, self._build(offset))
            self._store(f"{offset:x}", index.pack)
        return index

    def _stored_index(self, offset: int) -> UnitIndex | None:
        index = self._indexes.get(offset)
        if index is not None:
            self._indexes.move_to_end(offset)
            return index
        data = self._stored.get(f"{offset:x}") if self._stored is not None else None
        with suppress(ValueError):
            return self._enter(offset, unit_index.unpack(data)) if data is not None else None
        return None

    def _enter(self, offset: int, index: UnitIndex) -> UnitIndex:
        self._indexes[offset] = index
        self._indexed += index.size
        while self._indexed > _MAX_INDEXED and len(self._indexes) > 1:
            self._indexed -= self._indexes.popitem(last=False)[1].size
        return index

    def _store(self, what: str, packed: Callable[[], bytes]) -> None:
        if self._stored is not None and not self.damaged and not self.missing:
            self._stored.put(what, packed())

    def _build(self, offset: int) -> UnitIndex:
        lines, functions, names = Lines.none(), Functions(), list[str]()
        with self._tolerate_damage():
            unit = CompileUnit(self._units, offset)
            if dw.STMT_LIST in unit.top:
                offset_of_lines = int(unit.top[dw.STMT_LIST][1])
                lines = read_lines(unit.sections, offset_of_lines, unit.compiled_in)
            whole = self._whole(unit)
            if whole is not None:
                functions_of_unit = read_functions(whole)
                functions, names = functions_of_unit, self._names(whole, functions_of_unit)
        return unit_index.build(lines, functions, names)

    def _whole(self, unit: CompileUnit) -> CompileUnit | None:
        """Return the unit with the entries: the unit itself, or the one in a split file."""
        if not unit.dwo_name:
            return unit
        split_unit = self._split.find(unit) if self._split is not None else None
        if split_unit is None:
            self.missing = unit.dwo_name
        return split_unit

    def _names(self, unit: CompileUnit, functions: Functions) -> list[str]:
        """Return the name of each function: its symbol, or DWARF's name if it was inlined."""
        names_by_origin: dict[Reference, str] = {}
        names = []
        begins = {function: low for low, _, function in reversed(functions.ranges)}
        for number, (origin, parent) in enumerate(
            zip(functions.origins, functions.parents, strict=True)
        ):
            name = self._symbol_at(begins[number]) if parent < 0 and number in begins else ""
            if (not name or lacks_type(name)) and number in functions.with_code:
                if origin not in names_by_origin:
                    names_by_origin[origin] = self._name(unit, origin)
                name = names_by_origin[origin] or name
            names.append(name)
        return names

    def _name(self, unit: CompileUnit, origin: Reference) -> str:
        with self._tolerate_damage():
            return function_name(unit, origin)
        return ""

    @contextmanager
    def _tolerate_damage(self) -> Iterator[None]:
        try:
            yield
        except Exception:  # a foreign file can lead to nearly any
            self.damaged = True
