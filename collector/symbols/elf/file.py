"""One ELF file: what of it is loaded where, its sections, its symbols.

The file may be a forged one: whatever is wrong with it comes out as ValueError, and nothing that
it says makes us read or unpack more than a bounded amount. pyelftools reads all sections at once,
as large as the file says, and knows no zstd.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import struct
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple, Protocol

from locktop.collector.symbols.elf.compression import old_size, unxz, unzdebug, unzlib, unzstd
from locktop.collector.symbols.elf.symbol_table import FUNCTIONS, OBJECTS, Symbols, SymbolTable

_PT_LOAD, _PT_NOTE, _PT_GNU_EH_FRAME = 1, 4, 0x6474E550
_PF_X = 1
_SHT_NOTE, _SHT_NOBITS = 7, 8
_SHF_ALLOC, _SHF_COMPRESSED = 2, 0x800
_NT_GNU_BUILD_ID = 3
_LONGEST_BUILD_ID = 64
_ZLIB, _ZSTD = 1, 2
_SYMBOL_TABLES = (".symtab", ".dynsym")  # the second is a part of the first, where that is left
#: Bytes of one section, and of all that are read from a file.
_MAX_SECTION = 512 << 20
_MAX_READ = 2 * _MAX_SECTION
_MAX_SECTIONS = 0x10000
#: Of a symbol table, which takes five times as much while it is sorted; five million symbols.
_MAX_SYMBOLS = 128 << 20
_MAX_STRINGS = 16 << 20  # names of sections
_MAX_NOTES = 1 << 20
#: Bytes of the small file in .gnu_debugdata; real ones have some hundred kilobytes.
_MAX_MINI = 64 << 20


class Source(Protocol):
    """Where the bytes of a file come from."""

    size: int

    def read_at(self, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes; fewer where the file ends."""


class InMemory:
    """A file that is bytes of ours."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    def read_at(self, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes; fewer where the file ends."""
        return self._data[offset : offset + size]


class Segment(NamedTuple):
    """A loadable segment: ``file_size`` bytes at ``offset`` lie at ``address``."""

    offset: int
    file_size: int
    address: int
    memory_size: int
    executable: bool


class Section(NamedTuple):
    """A line of the section table."""

    name: str
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int

    @property
    def has_content(self) -> bool:
        """Whether the file has its bytes: a debug file has most sections without."""
        return self.kind != _SHT_NOBITS


class _Form(NamedTuple):
    """How numbers are laid out in a file."""

    wide: bool
    little_endian: bool

    def layout(self, wide: str, narrow: str) -> struct.Struct:
        return struct.Struct(("<" if self.little_endian else ">") + (wide if self.wide else narrow))

    @property
    def segment(self) -> struct.Struct:
        return self.layout("IIQQQQQQ", "IIIIIIII")

    @property
    def section(self) -> struct.Struct:
        return self.layout("IIQQQQIIQQ", "IIIIIIIIII")


class ElfFile:
    """One file. The constructor raises ValueError when it is no sound ELF file."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._read = 0
        try:
            self._read_headers()
        except (struct.error, OSError) as error:
            raise ValueError(f"no sound ELF file: {error}") from None

    def _read_headers(self) -> None:
        head = self._source.read_at(0, 64)
        if (
            head[:4] != b"\x7fELF"
            or len(head) < 52
            or head[4] not in (1, 2)
            or head[5] not in (1, 2)
        ):
            raise ValueError("no ELF file")
        self._form = form = _Form(wide=head[4] == 2, little_endian=head[5] == 1)
        header = form.layout("16xHHIQQQIHHHHHH", "16xHHIIIIIHHHHHH").unpack_from(head)
        self._machine = header[1]
        segments, sections = header[4], header[5]
        segment_size, segment_count, section_size, section_count, names = header[8:13]
        self.segments = self._segments(segments, segment_size, segment_count)
        self._sections = self._read_sections(sections, section_size, section_count, names)
        self._by_name = {section.name: section for section in reversed(self._sections)}
        #: The number that this build and its debug file share, in hex; "" if it has none.
        self.build_id = self._find_build_id()

    def _segments(self, offset: int, size: int, count: int) -> tuple[Segment, ...]:
        found = []
        self._notes: list[tuple[int, int]] = []
        #: Where the table lies that leads to call frame information; None if there is none.
        self.frame_header: Segment | None = None
        for fields in self._table(self._form.segment, offset, size, count):
            if self._form.wide:
                kind, flags, at, address, _, file_size, memory_size, _ = fields
            else:
                kind, at, address, _, file_size, memory_size, flags, _ = fields
            if kind == _PT_LOAD:
                executable = bool(flags & _PF_X)
                found.append(Segment(at, file_size, address, memory_size, executable))
            elif kind == _PT_GNU_EH_FRAME:
                self.frame_header = Segment(at, file_size, address, memory_size, False)
            elif kind == _PT_NOTE:
                self._notes.append((at, file_size))
        return tuple(found)

    def _read_sections(self, offset: int, size: int, count: int, names: int) -> list[Section]:
        if not offset:
            return []
        rows = list(self._table(self._form.section, offset, size, max(count, 1)))
        if not rows:
            return []
        if not count:  # more than fit into the header
            rows = list(self._table(self._form.section, offset, size, rows[0][5]))
        names = rows[0][6] if names == 0xFFFF else names
        at, length = rows[names][4:6] if names < len(rows) else (0, 0)
        strings = self._bytes(at, min(length, _MAX_STRINGS))
        return [
            Section(_string(strings, name), kind, flags, address, at, length, link)
            for name, kind, flags, address, at, length, link, *_ in rows
        ]

    def _table(
        self, layout: struct.Struct, offset: int, size: int, count: int
    ) -> Iterator[tuple[int, ...]]:
        if count and size != layout.size:
            raise ValueError("no sound ELF file: a table's entries are of an unknown size")
        data = self._bytes(offset, layout.size * min(count, _MAX_SECTIONS))
        return layout.iter_unpack(data[: len(data) - len(data) % layout.size])

    # ---- where it is loaded ----

    def bias(self, start: int, offset: int) -> int | None:
        """Return how far from its link-time addresses the file lies when ``offset`` of it is mapped
        at ``start``; None when nothing of it is loaded from there."""
        page = mmap.PAGESIZE - 1  # mappings begin at pages, segments need not
        for segment in self.segments:
            if segment.offset & ~page == offset:
                return start - (offset - segment.offset + segment.address)
        return None

    def loaded(self, address: int) -> bool:
        """Whether a link-time address belongs to the file's memory, zeroed data included."""
        return any(s.address <= address < s.address + s.memory_size for s in self.segments)

    def at(self, address: int, size: int) -> bytes:
        """Return up to ``size`` bytes of the file that are loaded at a link-time address; fewer
        where no more is. Raises ValueError where the file cannot be read."""
        for segment in self.segments:
            inside = address - segment.address
            if 0 <= inside < segment.file_size:
                size = min(size, segment.file_size - inside, _MAX_SECTION)
                try:
                    return self._source.read_at(segment.offset + inside, size)
                except OSError as error:
                    raise ValueError(f"cannot be read: {os.strerror(error.errno or 0)}") from None
        return b""

    # ---- sections ----

    def section(self, name: str) -> Section | None:
        """Return the section of that name."""
        return self._by_name.get(name)

    def data(self, section: Section) -> bytes:
        """Return a section's content, unpacked where it is compressed.

        Raises ValueError where it is damaged, larger than is sane, or compressed in an unknown way.
        """
        if section.kind == _SHT_NOBITS:
            raise ValueError(f"section {section.name} has no content here")
        data = self._bytes(section.offset, section.size)
        if section.flags & _SHF_COMPRESSED:
            header = self._compression_header
            if len(data) < header.size:
                raise ValueError(f"section {section.name} is cut off")
            method, size = header.unpack_from(data)[:2]
            self._count(size)
            data = data[header.size :]
            if method not in (_ZLIB, _ZSTD):
                raise ValueError(f"section {section.name} is compressed by an unknown method")
            return unzlib(data, size) if method == _ZLIB else unzstd(data, size)
        if section.name.startswith(".zdebug"):
            self._count(old_size(data))
            return unzdebug(data)
        return data

    def content(self, name: str) -> bytes | None:
        """Return the content of the section of that name; None if there is none. As `data()`."""
        section = self.section(name)
        return None if section is None or section.kind == _SHT_NOBITS else self.data(section)

    def part(self, section: Section, offset: int, size: int) -> bytes:
        """Return a part of a section that is not compressed; ValueError where it has none there."""
        if section.kind == _SHT_NOBITS or min(offset, size) < 0 or offset + size > section.size:
            raise ValueError(f"section {section.name} has no such part")
        try:
            data = self._source.read_at(section.offset + offset, size)
        except OSError as error:
            raise ValueError(f"cannot be read: {os.strerror(error.errno or 0)}") from None
        if len(data) < size:
            raise ValueError(f"section {section.name} is cut off")
        return data

    def is_compressed(self, section: Section) -> bool:
        """Tell whether a section's content is not in the file as it is."""
        return bool(section.flags & _SHF_COMPRESSED) or section.name.startswith(".zdebug")

    def size(self, section: Section) -> int:
        """Return the size of a section's unpacked content."""
        if section.flags & _SHF_COMPRESSED:
            header = self._compression_header
            return int(header.unpack(self._bytes(section.offset, header.size))[1])
        if section.name.startswith(".zdebug"):
            return old_size(self._bytes(section.offset, 12))
        return section.size

    @property
    def _compression_header(self) -> struct.Struct:
        return self._form.layout("I4xQQ", "III")

    def _bytes(self, offset: int, size: int) -> bytes:
        size = min(size, max(0, self._source.size - offset))
        self._count(size)
        try:
            return self._source.read_at(offset, size)
        except OSError as error:
            raise ValueError(f"cannot be read: {os.strerror(error.errno or 0)}") from None

    def _count(self, size: int) -> None:
        self._read += size
        if size > _MAX_SECTION or self._read > _MAX_READ:
            raise ValueError("its sections are larger than is sane")

    def number(self, data: bytes, at: int) -> int:
        """Return a 32-bit number in the file's byte order; ValueError behind the end."""
        if len(data) < at + 4:
            raise ValueError("cut off")
        return int.from_bytes(data[at : at + 4], "little" if self._form.little_endian else "big")

    # ---- what it is ----

    def _find_build_id(self) -> str:
        # A debug file keeps the headers of segments without their content: the sections come first.
        places = [(s.offset, s.size) for s in self._sections if s.kind == _SHT_NOTE]
        for offset, size in places or self._notes:
            for kind, owner, text in self._notes_in(offset, size):
                if kind == _NT_GNU_BUILD_ID and owner == b"GNU\0" and text:
                    return text[:_LONGEST_BUILD_ID].hex()
        return ""

    def _notes_in(self, offset: int, size: int) -> Iterator[tuple[int, bytes, bytes]]:
        data = self._bytes(offset, min(size, _MAX_NOTES))
        header = self._form.layout("III", "III")
        at = 0
        while at + header.size <= len(data):
            name_size, text_size, kind = header.unpack_from(data, at)
            name = at + header.size
            text = name + (name_size + 3 & ~3)
            yield kind, data[name : name + name_size], data[text : text + text_size]
            at = text + (text_size + 3 & ~3)

    # ---- symbols ----

    @cached_property
    def _symbol_table(self) -> SymbolTable | None:
        for name in _SYMBOL_TABLES:
            section = self.section(name)
            if section is None or section.kind == _SHT_NOBITS:
                continue
            if section.link >= len(self._sections):
                raise ValueError(f"section {name} names no strings")
            if self.size(section) > _MAX_SYMBOLS:
                raise ValueError(f"section {name} is larger than is sane")
            return SymbolTable(
                self.data(section),
                self.data(self._sections[section.link]),
                {
                    number: s.address + s.size
                    for number, s in enumerate(self._sections)
                    if s.flags & _SHF_ALLOC
                },
                wide=self._form.wide,
                little_endian=self._form.little_endian,
            )
        return None

    def function_named(self, name: str) -> int | None:
        """Return the link-time address of a function; None if the file has none of that name.
        ValueError if its symbol table is damaged."""
        table = self._symbol_table
        return table.address_of(name) if table is not None else None

    @cached_property
    def functions(self) -> Symbols | None:
        """The functions; None if the file has no symbol table. ValueError if it is damaged."""
        table = self._symbol_table
        return table.select(FUNCTIONS, reach=True) if table else None

    @cached_property
    def objects(self) -> Symbols | None:
        """The data objects; None if the file has no symbol table. ValueError if it is damaged."""
        return self._symbol_table.select(OBJECTS) if self._symbol_table else None

    @cached_property
    def mini(self) -> ElfFile | None:
        """The small file of further functions that distributions leave in a stripped one."""
        packed = self.content(".gnu_debugdata")
        return ElfFile(InMemory(unxz(packed, _MAX_MINI))) if packed else None

    # ---- DWARF ----

    def has_dwarf(self) -> bool:
        """Tell whether there are source lines to be had."""
        return any(
            (section := self.section(name)) is not None and section.kind != _SHT_NOBITS
            for name in (".debug_info", ".zdebug_info", ".debug_info.dwo")
        )

    @property
    def machine(self) -> int:
        """The processor that it is for (e_machine); 0 where numbers are not as we read them."""
        return self._machine if self._form.wide and self._form.little_endian else 0

    @property
    def little_endian(self) -> bool:
        """Whether numbers begin with their lowest byte."""
        return self._form.little_endian

    @property
    def shape(self) -> str:
        """A number that files with other sections do not share, in hex."""
        table = repr((self._source.size, self._sections)).encode("utf-8", "surrogateescape")
        return hashlib.blake2b(table, digest_size=16).hexdigest()


def _string(strings: bytes, at: int) -> str:
    end = strings.find(b"\0", at, at + 256)
    return strings[at : end if end >= 0 else at + 256].decode("utf-8", "replace")
