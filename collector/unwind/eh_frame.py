"""The call frame information of one ELF file: the row of an address, read when it is asked for."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from locktop.collector.symbols.elf.file import ElfFile
from locktop.collector.unwind import pointer_encodings
from locktop.collector.unwind.cfi_program import Row, row
from locktop.collector.unwind.fde import Entries, Frames, Function

#: Bytes of the linker's table; it has eight for each function.
_MAX_TABLE = 64 << 20
#: Bytes of a section without one, of which each entry must be looked at; some 5 us each.
_MAX_SCANNED = 16 << 20
_MAX_ROWS = 1 << 16


class _Index(NamedTuple):
    starts: Sequence[int]  # sorted
    places: Sequence[int]
    base: int  # what to add to both
    entries: Entries


class FrameTable:
    """What one file tells. ``debug`` returns its separate debug file, and by how much addresses are
    more there; it is asked only where the file itself tells nothing."""

    def __init__(
        self, elf: ElfFile, debug: Callable[[], tuple[ElfFile, int] | None] = lambda: None
    ) -> None:
        self._elf = elf
        self._debug_file = debug
        self._rows: dict[int, Row | None] = {}

    def row(self, address: int) -> Row | None:
        """Return the row of a link-time address, None where nothing is told of it.

        Raises ValueError where what is told is damaged.
        """
        if address not in self._rows:
            if len(self._rows) >= _MAX_ROWS:
                self._rows.clear()
            self._rows[address] = self._find(address)
        return self._rows[address]

    def code(self, start: int, size: int) -> bytes:
        """Return up to ``size`` bytes of the program at a link-time address; ValueError where they
        cannot be read."""
        return self._elf.at(start, size)

    def function_named(self, name: str) -> int | None:
        """Return the link-time address of a function, None if there is none of that name;
        ValueError where that cannot be read."""
        return self._elf.function_named(name)

    def _find(self, address: int) -> Row | None:
        damage = None
        for index, shift in self._indexes():
            try:
                function = _function(index, address + shift)
                if function is not None:
                    common, start, end, instructions, place = function
                    found = row(common, start, end, instructions, place, address + shift)
                    return found._replace(start=start - shift, end=end - shift)
            except (ValueError, IndexError) as error:
                damage = error  # another section may tell
        if damage is not None:
            raise ValueError(f"damaged call frame information: {damage}")
        return None

    def _indexes(self) -> Iterator[tuple[_Index, int]]:
        """Those that there are, the likeliest first, each with the shift of its addresses."""
        if self._loaded is not None:
            yield self._loaded, 0
        if self._own is not None:
            yield self._own, 0
        if self._separate is not None:
            yield self._separate

    @cached_property
    def _loaded(self) -> _Index | None:
        return _sound(lambda: _of_eh_frame(self._elf))

    @cached_property
    def _own(self) -> _Index | None:
        return _sound(lambda: _of_debug_frame(self._elf))

    @cached_property
    def _separate(self) -> tuple[_Index, int] | None:
        found = self._debug_file()
        index = _sound(lambda: _of_debug_frame(found[0])) if found is not None else None
        return (index, found[1]) if found is not None and index is not None else None


def _sound(build: Callable[[], _Index | None]) -> _Index | None:
    """A damaged section tells nothing, and takes as long each time."""
    try:
        return build()
    except (ValueError, IndexError):
        return None


def _of_eh_frame(elf: ElfFile) -> _Index | None:
    """By the linker's table, else by looking at all of .eh_frame."""
    header = elf.frame_header
    table = elf.at(header.address, min(header.file_size, _MAX_TABLE)) if header else b""
    section = elf.section(".eh_frame")
    if section is not None and section.has_content:
        begin, end = section.address, section.address + section.size
    elif header is not None and len(table) > 4:  # what was stripped, or is read from memory
        begin, _ = pointer_encodings.pointer(table, 4, table[1], header.address, header.address)
        end = max((s.address + s.file_size for s in elf.segments if s.address <= begin), default=0)
    else:
        return None
    entries = Entries(Frames(elf.at, begin, end, is_loaded=True))
    linked = _linked(table, header.address, entries) if header is not None else None
    return linked or _scanned(entries, end - begin)


def _linked(table: bytes, address: int, entries: Entries) -> _Index | None:
    """The linker's table (LSB 5, 10.6.2); None where it has none, or an unusual one."""
    if len(table) < 12 or table[0] != 1 or pointer_encodings.OMITTED in table[1:4]:
        return None
    _, at = pointer_encodings.pointer(table, 4, table[1], address, address)
    count, at = pointer_encodings.pointer(table, at, table[2], address, address)
    if not count or table[3] != pointer_encodings.TABLE or at + 8 * count > len(table):
        return None
    pairs = memoryview(table)[at : at + 8 * count].cast("i")
    return _Index(pairs[::2], pairs[1::2], address, entries)


def _of_debug_frame(elf: ElfFile) -> _Index | None:
    section = elf.section(".debug_frame") or elf.section(".zdebug_frame")
    if section is None or not section.has_content or elf.size(section) > _MAX_SCANNED:
        return None
    data = elf.data(section)
    frames = Frames(lambda at, size: data[at : at + size], 0, len(data), is_loaded=False)
    return _scanned(Entries(frames), len(data))


def _scanned(entries: Entries, size: int) -> _Index | None:
    if size > _MAX_SCANNED:
        return None
    found = sorted(entries.all())
    starts, places = [start for start, _ in found], [place for _, place in found]
    return _Index(starts, places, 0, entries) if found else None


def _function(index: _Index, address: int) -> Function | None:
    """The FDE of an address, if there is one."""
    at = bisect_right(index.starts, address - index.base) - 1
    if at < 0:
        return None
    function = index.entries.function(index.places[at] + index.base)
    return function if function.start <= address < function.end else None
