"""The index of one compilation unit, in tables that can be stored. By address they give the source
line, the function, and the functions inlined there."""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

import msgpack

from locktop.collector.symbols.dwarf.functions import Functions
from locktop.collector.symbols.dwarf.line_program import Lines

#: The number changes whenever the stored form or its meaning changes.
_FORMAT = (2, sys.byteorder)
_MAX_DEPTH = 500  # functions inlined into each other
_NOTHING = -1
# Type codes of array.array, in the order of UnitIndex.
_ADDRESS, _NUMBER, _SIGNED = "Q", "I", "i"


class SourceLocation(NamedTuple):
    """A function and a line; "" and 0 stand for what is not known."""

    function: str  # as in the file: mangled
    file: str  # the path as the compiler knew it; relative if the unit names no directory
    line: int


class UnitIndex:
    """Each table is sorted by address; a row holds until the next one."""

    def __init__(self, tables: tuple[array[int], ...], strings: list[str]) -> None:
        (
            self._lines_at,
            self._files,
            self._lines,
            self._functions_at,
            self._functions,
            self._parents,
            self._names,
            self._call_files,
            self._call_lines,
        ) = self._tables = tables
        self._strings = strings
        self.size = sum(len(table) * table.itemsize for table in tables)  # bytes, nearly

    def find(self, address: int) -> tuple[SourceLocation, ...]:
        """Return the source locations of a link-time address, innermost first; () if unknown.

        Inlined functions come first, then the function that the code belongs to.
        """
        try:
            return tuple(self._locations(address))
        except IndexError:  # a damaged index out of the cache
            return ()

    def _locations(self, address: int) -> Iterator[SourceLocation]:
        file, line = self._line(address)
        index = bisect_right(self._functions_at, address) - 1
        function = self._functions[index] if index >= 0 else _NOTHING
        if function < 0 and line:
            yield SourceLocation("", str(self._strings[file]), line)
        for _ in range(_MAX_DEPTH):
            if function < 0:
                return
            name = self._strings[self._names[function]]
            yield SourceLocation(str(name), str(self._strings[file]), line)
            file, line = self._call_files[function], self._call_lines[function]
            function = self._parents[function]

    def _line(self, address: int) -> tuple[int, int]:
        index = bisect_right(self._lines_at, address) - 1
        return (self._files[index], self._lines[index]) if index >= 0 else (0, 0)

    def pack(self) -> bytes:
        """Return the index as bytes."""
        tables = [table.tobytes() for table in self._tables]
        data: bytes = msgpack.packb((*_FORMAT, tables, self._strings))
        return data


_TYPECODES = (
    _ADDRESS, _NUMBER, _NUMBER, _ADDRESS, _SIGNED, _SIGNED, _NUMBER, _NUMBER, _NUMBER,
)  # fmt: skip


def unpack(data: bytes) -> UnitIndex:
    """Return the index that `pack()` returned as bytes; ValueError for any other bytes."""
    try:
        version, order, packed, strings = msgpack.unpackb(data)
        if (version, order) != _FORMAT or len(packed) != len(_TYPECODES):
            raise ValueError
        tables = tuple(array(code, part) for code, part in zip(_TYPECODES, packed, strict=True))
        if not _fit(*tables) or not isinstance(strings, list):
            raise ValueError
    except Exception:
        raise ValueError("no index of this version") from None
    return UnitIndex(tables, strings)


def _fit(
    lines_at: array[int],
    files: array[int],
    lines: array[int],
    functions_at: array[int],
    functions: array[int],
    *of_functions: array[int],
) -> bool:
    """Tell whether the tables have equal lengths; their content is checked when it is used."""
    return (
        len(lines_at) == len(files) == len(lines)
        and len(functions_at) == len(functions)
        and len(set(map(len, of_functions))) == 1
    )


def build(lines: Lines, functions: Functions, names: list[str]) -> UnitIndex:
    """Return the index of a unit; ``names`` are those of its functions."""
    strings = {"": 0}
    files = [_intern(strings, name) for name in lines.names] or [0]
    segments = _segments(functions.ranges)
    tables = (
        lines.addresses,
        array(_NUMBER, [files[file] for file in lines.files]),
        lines.lines,
        array(_ADDRESS, [address for address, _ in segments]),
        array(_SIGNED, [function for _, function in segments]),
        array(_SIGNED, functions.parents),
        array(_NUMBER, [_intern(strings, name) for name in names]),
        array(_NUMBER, [files[f] if f < len(files) else 0 for f in functions.call_files]),
        array(_NUMBER, [line if line < 1 << 31 else 0 for line in functions.call_lines]),
    )
    return UnitIndex(tables, list(strings))


def _intern(strings: dict[str, int], text: str) -> int:
    return strings.setdefault(text, len(strings))


def _segments(ranges: list[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """Return addresses in order, each with the innermost function from there on."""
    segments: list[tuple[int, int]] = []
    context: list[tuple[int, int]] = []  # (end, function) of the open ranges

    def close_until(address: int) -> None:
        while context and context[-1][0] <= address:
            end, _ = context.pop()
            segments.append((end, context[-1][1] if context else _NOTHING))

    # Of equal ranges the later one is the inner one.
    for low, high, function in sorted(ranges, key=lambda r: (r[0], -r[1], r[2])):
        close_until(low)
        if context and high > context[-1][0]:
            high = context[-1][0]
        segments.append((low, function))
        context.append((high, function))
    close_until(1 << 64)
    return segments
