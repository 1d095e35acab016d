"""Source lines out of DWARF, one compilation unit at a time, when first asked for."""

from __future__ import annotations

import posixpath
from bisect import bisect_right
from collections import OrderedDict
from typing import Any

from locktop.collector.symbols.elf import ElfFile

_MOST_TABLES = 64  # line tables kept; one of a large C++ unit has some 100,000 rows
_MOST_UNITS = 20_000

Row = tuple[int, str, int, bool]  # address, file, line, end of a sequence


class Lines:
    """The line tables of one ELF file. Damaged DWARF gives no lines, never an exception."""

    def __init__(self, file: ElfFile, supplement: ElfFile | None = None) -> None:
        self._dwarf = _dwarf_of(file, supplement)
        self._aranges: Any = None
        self._units: list[tuple[int, int, int]] | None = None  # (low, high, unit's offset)
        self._tables: OrderedDict[int, tuple[list[int], list[Row]]] = OrderedDict()
        if self._dwarf is not None:
            try:
                self._aranges = self._dwarf.get_aranges()
            except Exception:
                self._aranges = None

    def find(self, address: int) -> tuple[str, int] | None:
        """Return the file's base name and the line of a link-time address."""
        if self._dwarf is None:
            return None
        try:
            unit = self._unit_at(address)
            return None if unit is None else _row_at(*self._table(unit), address)
        except Exception:
            return None

    def _unit_at(self, address: int) -> int | None:
        if self._aranges is not None:
            offset = self._aranges.cu_offset_at_addr(address)
            if offset is not None:
                return int(offset)
        if self._units is None:  # clang writes no .debug_aranges
            self._units = sorted(_unit_ranges(self._dwarf))
        at = bisect_right(self._units, (address, 1 << 64, 0)) - 1
        if at >= 0 and self._units[at][0] <= address < self._units[at][1]:
            return self._units[at][2]
        return None

    def _table(self, unit: int) -> tuple[list[int], list[Row]]:
        table = self._tables.get(unit)
        if table is None:
            rows = _rows(self._dwarf, self._dwarf.get_CU_at(unit))
            table = self._tables[unit] = [row[0] for row in rows], rows
            if len(self._tables) > _MOST_TABLES:
                self._tables.popitem(last=False)
        self._tables.move_to_end(unit)
        return table


def _dwarf_of(file: ElfFile, supplement: ElfFile | None) -> Any:
    try:
        return file.dwarf(supplement) if file.has_dwarf() else None
    except Exception:  # as everywhere with a stranger's DWARF
        return None


def _row_at(addresses: list[int], rows: list[Row], address: int) -> tuple[str, int] | None:
    at = bisect_right(addresses, address) - 1
    if at < 0 or rows[at][3]:
        return None
    return (rows[at][1], rows[at][2]) if rows[at][2] else None


def _rows(dwarf: Any, unit: Any) -> list[Row]:
    program = dwarf.line_program_for_CU(unit)
    if program is None:
        return []
    names, rows = _file_names(program), []
    for entry in program.get_entries():
        state = entry.state
        if state is not None:
            rows.append(
                (state.address, names.get(state.file, ""), state.line or 0, state.end_sequence)
            )
    # The end of one sequence may be the start of the next: the start must win.
    rows.sort(key=lambda row: (row[0], not row[3]))
    return rows


def _file_names(program: Any) -> dict[int, str]:
    first = 0 if program.header.version >= 5 else 1
    return {
        number: posixpath.basename(_text(entry.name))
        for number, entry in enumerate(program["file_entry"], first)
    }


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _unit_ranges(dwarf: Any) -> list[tuple[int, int, int]]:
    found: list[tuple[int, int, int]] = []
    for number, unit in enumerate(dwarf.iter_CUs()):
        if number >= _MOST_UNITS:
            break
        top = unit.get_top_DIE()
        found += [(low, high, unit.cu_offset) for low, high in _ranges(dwarf, unit, top)]
    return found


def _ranges(dwarf: Any, unit: Any, top: Any) -> list[tuple[int, int]]:
    attributes = top.attributes
    low = attributes["DW_AT_low_pc"].value if "DW_AT_low_pc" in attributes else 0
    if "DW_AT_ranges" in attributes:
        return _range_list(dwarf, unit, attributes["DW_AT_ranges"].value, low)
    if "DW_AT_high_pc" not in attributes:
        return []
    high = attributes["DW_AT_high_pc"]
    # A constant is the length, an address the end (DWARF 5, 2.17.2).
    return [(low, high.value if high.form == "DW_FORM_addr" else low + high.value)]


def _range_list(dwarf: Any, unit: Any, offset: int, base: int) -> list[tuple[int, int]]:
    from elftools.dwarf.ranges import BaseAddressEntry

    found = []
    for entry in dwarf.range_lists().get_range_list_at_offset(offset, cu=unit):
        if isinstance(entry, BaseAddressEntry):
            base = entry.base_address
            continue
        start = 0 if getattr(entry, "is_absolute", False) else base
        found.append((start + entry.begin_offset, start + entry.end_offset))
    return found
