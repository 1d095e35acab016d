"""Which compilation unit the code at an address belongs to."""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator

import msgpack

from locktop.collector.symbols.dwarf.sections import DebugSections

_MAX_LISTED = 256 << 20  # bytes
_PADDING = 16  # bytes between functions that belong to no unit

#: Lowest address, address behind the last byte, offset of the unit in .debug_info.
UnitRange = tuple[int, int, int]


class UnitRanges:
    """Ranges in order of address, each with the offset of its unit in .debug_info."""

    def __init__(self, lows: array[int], highs: array[int], units: array[int]) -> None:
        self.lows = lows
        self.highs = highs
        self.units = units

    def find(self, address: int) -> int | None:
        """Return the offset of the unit that the code at an address belongs to; None if unknown."""
        index = bisect_right(self.lows, address) - 1
        return self.units[index] if index >= 0 and address < self.highs[index] else None

    def pack(self) -> bytes:
        """Return the ranges as bytes."""
        tables = [table.tobytes() for table in (self.lows, self.highs, self.units)]
        data: bytes = msgpack.packb(tables)
        return data

    @classmethod
    def unpack(cls, data: bytes) -> UnitRanges:
        """Return the ranges that `pack()` returned as bytes; ValueError for any other bytes."""
        try:
            lows, highs, units = (array("Q", table) for table in msgpack.unpackb(data))
        except Exception:
            raise ValueError("no ranges of units") from None
        if not len(lows) == len(highs) == len(units):
            raise ValueError("no ranges of units")
        return cls(lows, highs, units)


def unit_ranges(ranges: Iterable[UnitRange]) -> UnitRanges:
    """Sort ranges, and join adjacent ranges of one unit."""
    joined = UnitRanges(array("Q"), array("Q"), array("Q"))
    lows, highs, units = joined.lows, joined.highs, joined.units
    for low, high, unit in sorted(ranges):
        if lows and units[-1] == unit and low - highs[-1] < _PADDING:
            highs[-1] = max(high, highs[-1])
        else:
            lows.append(low)
            highs.append(high)
            units.append(unit)
    return joined


def listed_ranges(sections: DebugSections) -> Iterator[UnitRange]:
    """Yield the ranges of .debug_aranges, if a compiler wrote one."""
    size = sections.size("aranges")
    if size > _MAX_LISTED:
        raise ValueError(".debug_aranges is larger than is sane")
    data, offset = sections.read("aranges", 0, size) if size else b"", 0
    while offset + 12 <= len(data):
        begin, (size,) = offset, struct.unpack_from("<I", data, offset)
        wide = size == 0xFFFFFFFF
        if wide:
            (size,) = struct.unpack_from("<Q", data, offset + 4)
        offset += 14 if wide else 6  # size, version
        (unit,) = struct.unpack_from("<Q" if wide else "<I", data, offset)
        offset += 8 if wide else 4
        width = data[offset]
        end = begin + size + (12 if wide else 4)
        if width not in (4, 8) or end > len(data):
            raise ValueError(".debug_aranges is damaged")
        pair = struct.Struct("<QQ" if width == 8 else "<II")
        offset += 2
        offset += -(offset - begin) % pair.size  # the pairs are aligned
        part = (
            data[offset : offset + (end - offset) // pair.size * pair.size] if end > offset else b""
        )
        for low, length in pair.iter_unpack(part):
            if low and length:
                yield low, low + length, unit
        offset = end
