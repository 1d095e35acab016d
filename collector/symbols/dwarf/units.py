"""Compilation units of .debug_info: their headers, first entries, strings and ranges."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from locktop.collector.symbols.dwarf import abbrevs as dw
from locktop.collector.symbols.dwarf.abbrevs import Abbreviation, Attributes, Layout, Reference, leb
from locktop.collector.symbols.dwarf.sections import DebugSections

_MAX_UNIT = 64 << 20  # bytes
_MAX_UNITS = 100_000
_MAX_RECENT = 16
_MAX_TOP = 16 << 10  # bytes of a unit's first entry
_MAX_RANGES = 100_000  # of one entry
_SKELETON, _SPLIT = 4, 5  # unit types (DWARF 5, 7.5.1)
TYPE_UNITS = (2, 6)
COMPILED = (1, _SPLIT)

Range = tuple[int, int]  # [low, high) of link-time addresses


class UnitPart(NamedTuple):
    """The offsets of a unit's sections in a file with many split units."""

    info: int
    abbrev: int
    str_offsets: int
    rnglists: int


NO_PART = UnitPart(0, 0, 0, 0)


class CompileUnit:
    """One unit. Damaged bytes raise ValueError, IndexError or struct.error.

    Args:
        home: The units of the file.
        offset: Of the unit in .debug_info.
        skeleton: For a unit of a split file, the unit of the program that refers to it.
        part: For a unit of a .dwp file, the offsets of its sections.
    """

    def __init__(
        self,
        home: Units,
        offset: int,
        skeleton: CompileUnit | None = None,
        part: UnitPart = NO_PART,
    ) -> None:
        self.sections = sections = home.sections
        self.offset = offset
        self._home = home
        self._skeleton = skeleton
        self._part = part
        head = sections.read("info", offset, min(40, sections.size("info") - offset))
        size, position = struct.unpack_from("<I", head)[0], 4
        wide = size == 0xFFFFFFFF
        if wide:
            size, position = struct.unpack_from("<Q", head, 4)[0], 12
        self.end = offset + position + size
        (version,) = struct.unpack_from("<H", head, position)
        position += 2
        offset_format = "<Q" if wide else "<I"
        offset_size = 8 if wide else 4
        self.type, self.dwo_id = 1, 0
        if version >= 5:
            self.type, address_size = head[position], head[position + 1]
            (abbreviations,) = struct.unpack_from(offset_format, head, position + 2)
            position += 2 + offset_size
            if self.type in (_SKELETON, _SPLIT):
                (self.dwo_id,) = struct.unpack_from("<Q", head, position)
                position += 8
            elif self.type in TYPE_UNITS:
                position += 8 + offset_size
        else:
            (abbreviations,) = struct.unpack_from(offset_format, head, position)
            address_size = head[position + offset_size]
            position += offset_size + 1
        if not 2 <= version <= 5 or address_size not in (4, 8):
            raise ValueError(f"version {version} of DWARF is not known")
        self.layout = Layout(version, address_size, offset_size)
        self._abbreviations = abbreviations + part.abbrev
        self.first = offset + position  # the offset of the first entry

    @cached_property
    def data(self) -> bytes:
        """The bytes of the unit, with its header."""
        if self.end - self.offset > _MAX_UNIT:
            raise ValueError("a unit is larger than is sane")
        return self.sections.read("info", self.offset, self.end - self.offset)

    @cached_property
    def abbreviations(self) -> dict[int, Abbreviation]:
        """The layouts of its entries, by code."""
        data, start = self.sections.window("abbrev", self._abbreviations)
        return dw.abbreviations(data, start, self.layout)

    def entry(self, offset: int) -> Attributes:
        """Return the attributes of the entry at an offset in .debug_info."""
        code, position = leb(self.data, offset - self.offset)
        if offset < self.first or not code:
            raise ValueError("there is no entry")
        return self.abbreviations[code].read(self.data, position)[0]

    @cached_property
    def top(self) -> Attributes:
        """The attributes of the unit itself."""
        # The search for an address reads no more of each unit.
        data = self.sections.read("info", self.first, min(self.end - self.first, _MAX_TOP))
        code, position = leb(data, 0)
        table, table_at = self.sections.window("abbrev", self._abbreviations)
        return dw.abbreviations(table, table_at, self.layout, code)[code].read(data, position)[0]

    @property
    def dwo_name(self) -> str:
        """The path of the split file with the unit's entries; "" if they are here."""
        for attribute in (dw.DWO_NAME, dw.GNU_DWO_NAME):
            if attribute in self.top:
                return self.string(self.top[attribute]).decode("utf-8", "surrogateescape")
        return ""

    @property
    def compiled_in(self) -> bytes:
        """The directory of the compiler; b"" if the unit does not say."""
        return self.string(self.top[dw.COMP_DIR]) if dw.COMP_DIR in self.top else b""

    @property
    def id(self) -> int:
        """The number that a split unit and its skeleton share; 0 if there is none."""
        return self.dwo_id or int(self.top.get(dw.GNU_DWO_ID, (0, 0))[1])

    def string(self, value: tuple[int, object]) -> bytes:
        """Return the value of a string attribute."""
        form, number = value
        if isinstance(number, bytes):
            return number
        assert isinstance(number, int)
        if form in dw.STRING_INDEXES:
            size = self.layout.offset_size
            index_offset = self._string_offsets + number * size
            return self.sections.string(
                "str", self.sections.number("str_offsets", index_offset, size)
            )
        if form == dw.FORM_STRP:
            return self.sections.string("str", number)
        if form == dw.FORM_LINE_STRP:
            return self.sections.string("line_str", number)
        other = self._home.supplement
        return other.sections.string("str", number) if other is not None else b""

    @cached_property
    def _string_offsets(self) -> int:
        if dw.STR_OFFSETS_BASE in self.top:
            return int(self.top[dw.STR_OFFSETS_BASE][1])
        header = self._header_size(8) if self.layout.version >= 5 else 0
        return self._part.str_offsets + header

    def _header_size(self, size: int) -> int:
        """Return the size of a table's header in a split file, where no attribute gives its end."""
        return size + 8 if self.layout.offset_size == 8 else size

    def address(self, value: tuple[int, object]) -> int:
        """Return what an address attribute says."""
        form, number = value
        assert isinstance(number, int)
        return self._indexed_address(number) if form in dw.ADDRESS_INDEXES else number

    def _indexed_address(self, index: int) -> int:
        unit, size = self._skeleton or self, self.layout.address_size
        base = unit.top.get(dw.ADDR_BASE) or unit.top.get(dw.GNU_ADDR_BASE) or (0, 0)
        return unit.sections.number("addr", int(base[1]) + index * size, size)

    @cached_property
    def base_address(self) -> int:
        """The address that ranges are relative to."""
        top = (self._skeleton or self).top
        return (self._skeleton or self).address(top[dw.LOW_PC]) if dw.LOW_PC in top else 0

    def follow(self, value: Reference) -> tuple[CompileUnit, int] | None:
        """Return the entry that an attribute refers to, as its unit and offset in .debug_info.
        Return None if the entry is in a file that is missing."""
        form, offset = value
        if form in dw.UNIT_REFERENCES:
            return self, self.offset + offset
        if form == dw.FORM_REF_ADDR:
            inside = self.offset <= offset < self.end
            return (self if inside else self._home.unit_at(offset)), offset
        other = self._home.supplement
        if form not in dw.OTHER_FILES or other is None:
            return None
        return other.unit_at(offset), offset

    def ranges(self, attributes: Attributes) -> list[Range]:
        """Return the address ranges of an entry's code; nothing for discarded code."""
        if dw.RANGES in attributes:
            return [r for r in self._list_ranges(attributes[dw.RANGES]) if 0 < r[0] < r[1]]
        if dw.LOW_PC not in attributes or dw.HIGH_PC not in attributes:
            return []
        low = self.address(attributes[dw.LOW_PC])
        form, high = attributes[dw.HIGH_PC]
        if form == dw.FORM_ADDR or form in dw.ADDRESS_INDEXES:
            high = self.address((form, high))
        else:  # a constant is the length, an address the end (DWARF 5, 2.17.2)
            high += low
        return [(low, high)] if 0 < low < high else []

    def _list_ranges(self, value: tuple[int, int]) -> list[Range]:
        form, offset = value
        if self.layout.version < 5:
            unit = self._skeleton or self
            if self._skeleton is not None and dw.GNU_RANGES_BASE in unit.top:
                offset += int(unit.top[dw.GNU_RANGES_BASE][1])
            return list(_old_ranges(unit, offset, self.base_address))
        if form == dw.FORM_RNGLISTX:
            size = self.layout.offset_size
            in_split_file = self._part.rnglists + self._header_size(12)
            base = self.top.get(dw.RNGLISTS_BASE, (0, in_split_file))[1]
            offset = base + self.sections.number("rnglists", base + offset * size, size)
        return list(self._ranges(offset))

    def _ranges(self, offset: int) -> Iterator[Range]:
        data, position = self.sections.window("rnglists", offset)
        base, size = self.base_address, self.layout.address_size
        for _ in range(_MAX_RANGES):
            kind = data[position]
            position += 1
            if kind == 0:  # the end
                return
            if kind in (5, 6, 7):
                first = int.from_bytes(data[position : position + size], "little")
                position += size
            else:
                first, position = leb(data, position)
            if kind == 1:
                base = self._indexed_address(first)
                continue
            if kind == 5:
                base = first
                continue
            if kind == 6:
                second = int.from_bytes(data[position : position + size], "little")
                position += size
            else:
                second, position = leb(data, position)
            if kind == 2:
                yield self._indexed_address(first), self._indexed_address(second)
            elif kind == 3:
                first = self._indexed_address(first)
                yield first, first + second
            elif kind == 4:
                yield base + first, base + second
            elif kind == 6:
                yield first, second
            elif kind == 7:
                yield first, first + second
            else:
                raise ValueError(f"kind {kind} of range is not known")


def _old_ranges(unit: CompileUnit, offset: int, base: int) -> Iterator[Range]:
    """Yield the ranges of a list as DWARF before version 5 has them."""
    data, position = unit.sections.window("ranges", offset)
    size = unit.layout.address_size
    pair = struct.Struct("<QQ" if size == 8 else "<II")
    selects = (1 << 8 * size) - 1
    for _ in range(_MAX_RANGES):
        low, high = pair.unpack_from(data, position)
        position += pair.size
        if not low and not high:
            return
        if low == selects:
            base = high
        else:
            yield base + low, base + high


class Units:
    """The units of one file; ``supplement`` are those of a file that several programs share."""

    def __init__(self, sections: DebugSections, supplement: Units | None = None) -> None:
        self.sections = sections
        self.supplement = supplement
        self._recent: OrderedDict[int, CompileUnit] = OrderedDict()

    def release_memory(self) -> None:
        """Release what was read; it can be read again."""
        self._recent.clear()
        self.sections.release_memory()
        if self.supplement is not None:
            self.supplement.release_memory()

    def __iter__(self) -> Iterator[CompileUnit]:
        """Iterate over the units. Raises ValueError if one is damaged."""
        offset, size = 0, self.sections.size("info")
        for _ in range(_MAX_UNITS):
            if offset >= size:
                return
            unit = CompileUnit(self, offset)
            yield unit
            offset = unit.end

    def unit_at(self, offset: int) -> CompileUnit:
        """Return the unit that contains an offset in .debug_info."""
        index = bisect_right(self._offsets, offset) - 1
        begin = self._offsets[index] if index >= 0 else 0
        unit = self._recent.get(begin)
        if unit is None:
            unit = self._recent[begin] = CompileUnit(self, begin)
            if len(self._recent) > _MAX_RECENT:
                self._recent.popitem(last=False)
        self._recent.move_to_end(begin)
        return unit

    @cached_property
    def _offsets(self) -> list[int]:
        return [unit.offset for unit in self]
