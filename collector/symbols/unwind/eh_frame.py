"""The call frame information of one ELF file: the row of an address, read on demand."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from locktop.collector.symbols.elf.file import ElfFile
from locktop.collector.symbols.elf.linkage import linked_names
from locktop.collector.symbols.unwind import pointer_encodings
from locktop.collector.symbols.unwind.cfi_program import UnwindRow, row
from locktop.collector.symbols.unwind.fde import FrameEntries, FrameSection, FunctionEntry

#: Bytes of the linker's table; it has eight for each function.
_MAX_TABLE = 64 << 20
#: Bytes of a section without a table: the scan takes some 4 us for each entry.
_MAX_SCANNED = 16 << 20
_MAX_ROWS = 1 << 16


class _FrameIndex(NamedTuple):
    starts: Sequence[int]  # sorted
    positions: Sequence[int]
    base: int  # to be added to both
    entries: FrameEntries


class _SeparateIndex(NamedTuple):
    """The index of a separate debug file."""

    frames: _FrameIndex
    shift: int  # by how much addresses are higher there


class FrameTable:
    """The call frame information of one file.

    Args:
        elf: The file.
        debug: Returns the separate debug file, and by how much addresses are higher there. The
            function is called only if the file itself has no row for an address.
    """

    def __init__(
        self, elf: ElfFile, debug: Callable[[], tuple[ElfFile, int] | None] = lambda: None
    ) -> None:
        self._elf = elf
        self._debug_file = debug
        self._rows: dict[int, UnwindRow | None] = {}

    def row(self, address: int) -> UnwindRow | None:
        """Return the row of a link-time address; None if there is none.

        Raises:
            ValueError: The call frame information is damaged.
        """
        if address not in self._rows:
            if len(self._rows) >= _MAX_ROWS:
                self._rows.clear()
            self._rows[address] = self._find(address)
        return self._rows[address]

    def code(self, start: int, size: int) -> bytes:
        """Return up to ``size`` bytes of the program at a link-time address.

        Raises:
            ValueError: The file cannot be read.
        """
        return self._elf.loaded_bytes(start, size)

    def function_named(self, name: str) -> int | None:
        """Return the link-time address of a function; None if there is none of that name.

        Raises:
            ValueError: The symbol table is damaged.
        """
        return self._elf.function_named(name)

    def own_function_named(self, name: str) -> int | None:
        """Return the link-time address of a function of one version; None if there is none.

        Raises:
            ValueError: The symbol table is damaged.
        """
        return self._elf.own_function_named(name)

    @cached_property
    def linked_names(self) -> dict[int, str]:
        """The names of functions by the link-time addresses of their slots in the linkage table."""
        return linked_names(self._elf)

    def _find(self, address: int) -> UnwindRow | None:
        damage = None
        for index, shift in self._indexes():
            try:
                function = _function(index, address + shift)
                if function is not None:
                    unwind_row = row(function, address + shift)
                    return unwind_row._replace(
                        start=unwind_row.start - shift, end=unwind_row.end - shift
                    )
            except (ValueError, IndexError) as error:
                damage = error  # another section may have the row
        if damage is not None:
            raise ValueError(f"damaged call frame information: {damage}")
        return None

    def _indexes(self) -> Iterator[tuple[_FrameIndex, int]]:
        """Yield the indexes that exist, the likeliest first, with the shift of addresses."""
        if self._loaded_index is not None:
            yield self._loaded_index, 0
        if self._own is not None:
            yield self._own, 0
        if self._separate is not None:
            yield self._separate

    @cached_property
    def _loaded_index(self) -> _FrameIndex | None:
        return _or_none(lambda: _eh_frame_index(self._elf))

    @cached_property
    def _own(self) -> _FrameIndex | None:
        return _or_none(lambda: _debug_frame_index(self._elf))

    @cached_property
    def _separate(self) -> _SeparateIndex | None:
        debug_file = self._debug_file()
        if debug_file is None:
            return None
        elf, shift = debug_file
        index = _or_none(lambda: _debug_frame_index(elf))
        return _SeparateIndex(index, shift) if index is not None else None


def _or_none(build: Callable[[], _FrameIndex | None]) -> _FrameIndex | None:
    """Return an index, None for a damaged section: each try would take as long as the first."""
    try:
        return build()
    except (ValueError, IndexError):
        return None


def _eh_frame_index(elf: ElfFile) -> _FrameIndex | None:
    """Return the index of .eh_frame: the linker's table if there is one, else a scan."""
    header = elf.frame_header
    table = elf.loaded_bytes(header.address, min(header.file_size, _MAX_TABLE)) if header else b""
    section = elf.section(".eh_frame")
    if section is not None and section.has_content:
        begin, end = section.address, section.address + section.size
    elif header is not None and len(table) > 4:  # stripped, or read from memory
        begin, _ = pointer_encodings.pointer(table, 4, table[1], header.address, header.address)
        end = max((s.address + s.file_size for s in elf.segments if s.address <= begin), default=0)
    else:
        return None
    entries = FrameEntries(FrameSection(elf.loaded_bytes, begin, end, is_loaded=True))
    linked = _linker_index(table, header.address, entries) if header is not None else None
    return linked or _scan_entries(entries, end - begin)


def _linker_index(table: bytes, address: int, entries: FrameEntries) -> _FrameIndex | None:
    """Return the linker's table (LSB 5, 10.6.2); None if there is none, or an unusual one."""
    if len(table) < 12 or table[0] != 1 or pointer_encodings.OMITTED in table[1:4]:
        return None
    _, position = pointer_encodings.pointer(table, 4, table[1], address, address)
    count, position = pointer_encodings.pointer(table, position, table[2], address, address)
    if not count or table[3] != pointer_encodings.TABLE or position + 8 * count > len(table):
        return None
    pairs = memoryview(table)[position : position + 8 * count].cast("i")
    return _FrameIndex(pairs[::2], pairs[1::2], address, entries)


def _debug_frame_index(elf: ElfFile) -> _FrameIndex | None:
    section = elf.section(".debug_frame") or elf.section(".zdebug_frame")
    if section is None or not section.has_content or elf.size(section) > _MAX_SCANNED:
        return None
    data = elf.data(section)
    frames = FrameSection(
        lambda offset, size: data[offset : offset + size], 0, len(data), is_loaded=False
    )
    return _scan_entries(FrameEntries(frames), len(data))


def _scan_entries(entries: FrameEntries, size: int) -> _FrameIndex | None:
    if size > _MAX_SCANNED:
        return None
    functions = sorted(entries.starts())
    starts, positions = [start for start, _ in functions], [position for _, position in functions]
    return _FrameIndex(starts, positions, 0, entries) if functions else None


def _function(index: _FrameIndex, address: int) -> FunctionEntry | None:
    """Return the FDE of an address; None if there is none."""
    index_of_function = bisect_right(index.starts, address - index.base) - 1
    if index_of_function < 0:
        return None
    function = index.entries.function(index.positions[index_of_function] + index.base)
    return function if function.start <= address < function.end else None
