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
from locktop.collector.symbols.dwarf.aranges import Row, UnitRows, listed_ranges, unit_rows
from locktop.collector.symbols.dwarf.functions import Functions, function_name, read_functions
from locktop.collector.symbols.dwarf.line_program import Lines, read_lines
from locktop.collector.symbols.dwarf.sections import DebugSections
from locktop.collector.symbols.dwarf.split import SplitFiles
from locktop.collector.symbols.dwarf.unit_index import Place, UnitIndex
from locktop.collector.symbols.dwarf.units import TYPE_UNITS, Unit, Units
from locktop.collector.symbols.dwarf.variables import Variables, part_at
from locktop.collector.symbols.elf.file import ElfFile

_MAX_INDEXED = 64 << 20  # bytes of indexes kept in memory for one file

SymbolAt = Callable[[int], str]


class Kept(Protocol):
    """Bytes about one file, kept by other runs."""

    def get(self, key: str) -> bytes | None:
        """Return what is kept, None for nothing."""

    def put(self, key: str, data: bytes) -> None:
        """Keep it."""


class Dwarf:
    """The DWARF of one file. Where it is damaged less is known, and ``damaged`` is set."""

    def __init__(
        self,
        file: ElfFile,
        symbol_at: SymbolAt,
        supplement: ElfFile | None = None,
        kept: Kept | None = None,
        split: SplitFiles | None = None,
    ) -> None:
        """``symbol_at`` gives the name of the function that begins at an address, "" for none;
        ``supplement`` is the file that several programs' debug files share (made by dwz); ``kept``
        is what other runs found out; ``split`` finds what was left beside the program."""
        shared = Units(DebugSections(supplement)) if supplement is not None else None
        self._units = Units(DebugSections(file), shared)
        self._symbol_at = symbol_at
        self._kept = kept
        self._split = split
        self._rows: UnitRows | None = None
        self._indexes: OrderedDict[int, UnitIndex] = OrderedDict()
        self._indexed = 0
        self._lock = (
            Lock()
        )  # of two processes that have the file mapped each has a thread for names
        self.damaged = False
        self.missing = ""  # the name of a file that has a part of it, and is not here

    def find(self, address: int) -> tuple[Place, ...]:
        """Return the places of a link-time address, innermost first; () where none is known."""
        with self._lock, self._bearing_damage():
            unit = self.rows().find(address)
            return self._index(unit).find(address) if unit is not None else ()
        return ()

    def find_kept(self, address: int) -> tuple[Place, ...]:
        """As ``find()``, but () where that would have to read debug information first."""
        with self._lock, self._bearing_damage():
            rows = self._rows = self._rows or self._kept_rows()
            unit = rows.find(address) if rows is not None else None
            index = self._kept_index(unit) if unit is not None else None
            return index.find(address) if index is not None else ()
        return ()

    def part_at(self, variable: int, offset: int) -> tuple[str, str] | None:
        """Return the source file of the variable that begins at a link-time address, and what of
        it lies at ``offset``: ".member[3]", "" for the whole; None where that is not known."""
        key = f"part {variable:x} {offset:x}"
        with self._lock, self._bearing_damage():
            data = self._kept.get(key) if self._kept is not None else None
            with suppress(Exception):
                file, part = msgpack.unpackb(data or b"")
                return (str(file), str(part)) if file or part else None
            found = part_at(self._units, self._variables, variable, offset)
            self._keep(key, lambda: msgpack.packb(found or ("", "")))
            return found
        return None

    def rest(self) -> None:
        """Let go of what was read, but for the indexes: packed sections may be large."""
        with self._lock:
            self._units.rest()

    @cached_property
    def _variables(self) -> Variables:
        data = self._kept.get("variables") if self._kept is not None else None
        with suppress(ValueError):
            return Variables.unpacked(data) if data is not None else self._search_variables()
        return self._search_variables()

    def _search_variables(self) -> Variables:
        found = Variables.search(self._units.sections)
        self._keep("variables", found.packed)
        return found

    # ---- which unit ----

    def rows(self) -> UnitRows:
        """Return where the units' code lies."""
        rows = self._rows or self._kept_rows()
        if rows is None:
            rows = unit_rows(self._ranges())
            self._keep("units", rows.packed)
        self._rows = rows
        return rows

    def _kept_rows(self) -> UnitRows | None:
        data = self._kept.get("units") if self._kept is not None else None
        with suppress(ValueError):
            return UnitRows.unpacked(data) if data is not None else None
        return None

    def _ranges(self) -> list[Row]:
        rows: list[Row] = []
        with self._bearing_damage():
            rows += listed_ranges(self._units.sections)
        with self._bearing_damage():
            rows += self._ranges_of_units({row[2] for row in rows})
        return rows

    def _ranges_of_units(self, listed: set[int]) -> Iterator[Row]:
        """Of those that are not listed: clang lists none."""
        for unit in self._units:
            if unit.offset not in listed and unit.type not in TYPE_UNITS:
                with self._bearing_damage():
                    yield from ((*r, unit.offset) for r in unit.ranges(unit.top))

    # ---- what is in it ----

    def _index(self, offset: int) -> UnitIndex:
        index = self._kept_index(offset)
        if index is None:
            index = self._enter(offset, self._build(offset))
            self._keep(f"{offset:x}", index.packed)
        return index

    def _kept_index(self, offset: int) -> UnitIndex | None:
        index = self._indexes.get(offset)
        if index is not None:
            self._indexes.move_to_end(offset)
            return index
        data = self._kept.get(f"{offset:x}") if self._kept is not None else None
        with suppress(ValueError):
            return self._enter(offset, unit_index.unpacked(data)) if data is not None else None
        return None

    def _enter(self, offset: int, index: UnitIndex) -> UnitIndex:
        self._indexes[offset] = index
        self._indexed += index.size
        while self._indexed > _MAX_INDEXED and len(self._indexes) > 1:
            self._indexed -= self._indexes.popitem(last=False)[1].size
        return index

    def _keep(self, what: str, packed: Callable[[], bytes]) -> None:
        if self._kept is not None and not self.damaged and not self.missing:
            self._kept.put(what, packed())

    def _build(self, offset: int) -> UnitIndex:
        lines, functions, names = Lines.none(), Functions(), list[str]()
        with self._bearing_damage():
            unit = Unit(self._units, offset)
            if dw.STMT_LIST in unit.top:
                lines = read_lines(unit.sections, int(unit.top[dw.STMT_LIST][1]))
            whole = self._whole(unit)
            if whole is not None:
                found = read_functions(whole)
                functions, names = found, self._names(whole, found)
        return unit_index.build(lines, functions, names)

    def _whole(self, unit: Unit) -> Unit | None:
        """Return the unit that holds the entries: itself, or the one that it stands for."""
        if not unit.dwo_name:
            return unit
        found = self._split.find(unit) if self._split is not None else None
        if found is None:
            self.missing = unit.dwo_name
        return found

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
