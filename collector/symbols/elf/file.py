"""One ELF file: its loaded segments, its sections, its build id, its symbols.

pyelftools reads the headers, the tables of segments and sections, and the notes. A forged file
leads to ValueError. No number in the file makes the reader read or unpack more than a bounded
amount. Content and compression are read here, because pyelftools knows no zstd. Also its `ELFFile`
builds an object for each section, of the size that the file claims (docs/internals/adr/0003).
"""

from __future__ import annotations

import hashlib
import io
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, cached_property
from typing import TYPE_CHECKING, NamedTuple, cast

from elftools.common.exceptions import ELFError
from elftools.common.utils import struct_parse
from elftools.construct import ConstructError, Struct
from elftools.elf.notes import iter_notes
from elftools.elf.structs import ELFStructs

from locktop.collector.symbols.elf.bounded_file import BoundedFile, ByteSource, InMemory
from locktop.collector.symbols.elf.compression import (
    unpack_xz,
    unpack_zdebug,
    unpack_zlib,
    unpack_zstd,
    zdebug_size,
)
from locktop.collector.symbols.elf.symbol_table import (
    FUNCTIONS,
    OBJECTS,
    PLAIN_FUNCTIONS,
    Symbols,
    SymbolTable,
)

if TYPE_CHECKING:
    from elftools.construct.lib.container import Container
    from elftools.elf.elffile import ELFFile

_EXECUTABLE = 1  # PF_X
_ALLOCATED, _COMPRESSED = 2, 0x800  # SHF_ALLOC, SHF_COMPRESSED
_ZSTD = 2  # ELFCOMPRESS_ZSTD, which pyelftools does not name
_EXTENDED_INDEX = 0xFFFF  # SHN_XINDEX
_HEADER_SIZE = {1: 52, 2: 64}  # by EI_CLASS
_LITTLE_ENDIAN, _BIG_ENDIAN = 1, 2  # EI_DATA
#: Section .dynsym is a part of .symtab, and it remains where .symtab was stripped.
_SYMBOL_TABLES = (".symtab", ".dynsym")
_MAX_BUILD_ID = 64  # bytes
_MAX_HEADERS = 0x10000  # of segments, and of sections
#: Bytes of a symbol table: five million symbols. Sorting takes five times as much memory.
_MAX_SYMBOLS = 128 << 20
_MAX_SECTION_NAMES = 16 << 20  # bytes of all names
_MAX_SECTION_NAME = 256
_MAX_NOTES = 1 << 20  # bytes of all notes
#: Bytes of the unpacked file in .gnu_debugdata; real ones have some hundred kilobytes.
_MAX_MINI = 64 << 20


class Segment(NamedTuple):
    """A segment: ``file_size`` bytes at ``offset`` are loaded at ``address``."""

    offset: int
    file_size: int
    address: int
    memory_size: int
    executable: bool


class Section(NamedTuple):
    """An entry of the section table."""

    name: str
    kind: str | int  # pyelftools's name ("SHT_NOTE"); the number where there is no name
    flags: int
    address: int
    offset: int
    size: int
    link: int

    @property
    def has_content(self) -> bool:
        """Whether the file has the section's bytes: a debug file lacks those of most sections."""
        return self.kind != "SHT_NOBITS"


class ElfFile:
    """One ELF file.

    Attributes:
        build_id: The number that a build and its debug file share, in hex; "" if there is none.
        segments: The loadable segments.
        frame_header: The segment with the table of call frame information; None if there is none.

    Raises:
        ValueError: The constructor raises it if the source is no sound ELF file.
    """

    def __init__(self, source: ByteSource) -> None:
        self._file = BoundedFile(source)
        with _convert_errors():
            self._read_headers()

    def _read_headers(self) -> None:
        head = self._file.read(0, _HEADER_SIZE[2])
        if (
            head[:4] != b"\x7fELF"
            or len(head) < _HEADER_SIZE.get(head[4], 16)
            or head[4] not in _HEADER_SIZE
            or head[5] not in (_LITTLE_ENDIAN, _BIG_ENDIAN)
        ):
            raise ValueError("no ELF file")
        self._is_64_bit = head[4] == 2
        self.little_endian = head[5] == _LITTLE_ENDIAN
        self._structs = _structs(self.little_endian, 64 if self._is_64_bit else 32)
        header = self._structs.Elf_Ehdr.parse(head)
        #: pyelftools's name of the processor; "" where the numbers are not 64-bit little-endian.
        self.machine = str(header.e_machine) if self._is_64_bit and self.little_endian else ""
        self._read_segments(header)
        self._sections = self._read_sections(header)
        self._by_name = {section.name: section for section in reversed(self._sections)}
        self.build_id = self._find_build_id()

    def _read_segments(self, header: Container) -> None:
        self.frame_header: Segment | None = None
        self._note_segments: list[Segment] = []
        loaded = []
        rows = self._table(
            self._structs.Elf_Phdr, header.e_phoff, header.e_phentsize, header.e_phnum
        )
        for row in rows:
            segment = Segment(
                row.p_offset,
                row.p_filesz,
                row.p_vaddr,
                row.p_memsz,
                executable=bool(row.p_flags & _EXECUTABLE),
            )
            if row.p_type == "PT_LOAD":
                loaded.append(segment)
            elif row.p_type == "PT_GNU_EH_FRAME":
                self.frame_header = segment
            elif row.p_type == "PT_NOTE":
                self._note_segments.append(segment)
        self.segments = tuple(loaded)

    def _read_sections(self, header: Container) -> list[Section]:
        layout, offset, size = self._structs.Elf_Shdr, header.e_shoff, header.e_shentsize
        count = header.e_shnum
        rows = self._table(layout, offset, size, max(count, 1)) if offset else []
        if not rows:
            return []
        if not count:  # the count does not fit into the header
            rows = self._table(layout, offset, size, rows[0].sh_size)
        index = header.e_shstrndx
        index = rows[0].sh_link if index == _EXTENDED_INDEX else index
        names = b""
        if index < len(rows):
            length = min(rows[index].sh_size, _MAX_SECTION_NAMES)
            names = self._file.read(rows[index].sh_offset, length)
        return [
            Section(
                _string(names, row.sh_name),
                row.sh_type,
                row.sh_flags,
                row.sh_addr,
                row.sh_offset,
                row.sh_size,
                row.sh_link,
            )
            for row in rows
        ]

    def _table(self, layout: Struct, offset: int, size: int, count: int) -> list[Container]:
        """Read a table of headers as far as the file has it."""
        if not count:
            return []
        if size != layout.sizeof():
            raise ValueError("no sound ELF file: a table's entries are of an unknown size")
        data = self._file.read(offset, size * min(count, _MAX_HEADERS))
        stream = io.BytesIO(data)
        return [struct_parse(layout, stream) for _ in range(len(data) // size)]

    # ---- loaded memory ----

    def bias(self, start: int, offset: int) -> int | None:
        """Return the distance between the addresses in memory and the link-time addresses.

        Args:
            start: Where the file's bytes from ``offset`` on are mapped.
            offset: A multiple of the page size.

        Returns:
            The distance in bytes; None if no segment is loaded from there.
        """
        page = mmap.PAGESIZE - 1  # a mapping begins at a page, a segment need not
        for segment in self.segments:
            if segment.offset & ~page == offset:
                return start - (offset - segment.offset + segment.address)
        return None

    def first_address(self) -> int:
        """Return the lowest link-time address; 0 if nothing is loaded.

        The address differs between a library that prelink has moved and its debug file.
        """
        return min((segment.address for segment in self.segments), default=0)

    def is_loaded(self, address: int) -> bool:
        """Tell whether a link-time address belongs to the file's memory, with zeroed data."""
        return any(s.address <= address < s.address + s.memory_size for s in self.segments)

    def loaded_bytes(self, address: int, size: int) -> bytes:
        """Return up to ``size`` bytes of the file that are loaded at a link-time address.

        Raises:
            ValueError: The file cannot be read.
        """
        for segment in self.segments:
            inside = address - segment.address
            if 0 <= inside < segment.file_size:
                size = min(size, segment.file_size - inside)
                return self._file.read_unbudgeted(segment.offset + inside, size)
        return b""

    # ---- sections ----

    @property
    def sections(self) -> tuple[Section, ...]:
        """All sections, in the order of the section table."""
        return tuple(self._sections)

    def section(self, name: str) -> Section | None:
        """Return the first section of that name."""
        return self._by_name.get(name)

    def data(self, section: Section) -> bytes:
        """Return a section's content, unpacked where it is compressed.

        Raises:
            ValueError: The content is damaged, too large, or compressed by an unknown method.
        """
        if not section.has_content:
            raise ValueError(f"section {section.name} has no content here")
        data = self._file.read(section.offset, section.size)
        if section.flags & _COMPRESSED:
            return self._unpack(section, data)
        if section.name.startswith(".zdebug"):
            self._file.reserve(zdebug_size(data))
            return unpack_zdebug(data)
        return data

    def _unpack(self, section: Section, data: bytes) -> bytes:
        header = self._compression_header(section, data)
        self._file.reserve(header.ch_size)
        packed = data[self._structs.Elf_Chdr.sizeof() :]
        if header.ch_type == "ELFCOMPRESS_ZLIB":
            return unpack_zlib(packed, header.ch_size)
        if header.ch_type == _ZSTD:
            return unpack_zstd(packed, header.ch_size)
        raise ValueError(f"section {section.name} is compressed by an unknown method")

    def _compression_header(self, section: Section, data: bytes) -> Container:
        if len(data) < self._structs.Elf_Chdr.sizeof():
            raise ValueError(f"section {section.name} is cut off")
        header: Container = self._structs.Elf_Chdr.parse(data)
        return header

    def content(self, name: str) -> bytes | None:
        """Return the content of the section of that name; None if there is none.

        Raises:
            ValueError: As `data()`.
        """
        section = self.section(name)
        return self.data(section) if section is not None and section.has_content else None

    def part(self, section: Section, offset: int, size: int) -> bytes:
        """Return a part of a section that is not compressed.

        Raises:
            ValueError: The section has no such part.
        """
        if not section.has_content or min(offset, size) < 0 or offset + size > section.size:
            raise ValueError(f"section {section.name} has no such part")
        data = self._file.read_unbudgeted(section.offset + offset, size)
        if len(data) < size:
            raise ValueError(f"section {section.name} is cut off")
        return data

    def is_compressed(self, section: Section) -> bool:
        """Tell whether a section's content is packed in the file."""
        return bool(section.flags & _COMPRESSED) or section.name.startswith(".zdebug")

    def size(self, section: Section) -> int:
        """Return the size of a section's unpacked content in bytes.

        Raises:
            ValueError: The header of a compressed section is damaged.
        """
        if section.flags & _COMPRESSED:
            data = self._file.read(section.offset, self._structs.Elf_Chdr.sizeof())
            return int(self._compression_header(section, data).ch_size)
        if section.name.startswith(".zdebug"):
            return zdebug_size(self._file.read(section.offset, 12))
        return section.size

    def number(self, data: bytes, offset: int) -> int:
        """Return a 32-bit number in the file's byte order.

        Raises:
            ValueError: ``data`` ends before the number does.
        """
        if len(data) < offset + 4:
            raise ValueError("cut off")
        return int.from_bytes(data[offset : offset + 4], "little" if self.little_endian else "big")

    # ---- identity ----

    def _find_build_id(self) -> str:
        # A debug file has the headers of segments without their content: sections come first.
        sections = [s for s in self._sections if s.kind == "SHT_NOTE"]
        parts = [(s.offset, s.size) for s in sections]
        parts = parts or [(s.offset, s.file_size) for s in self._note_segments]
        left = _MAX_NOTES
        for offset, size in parts:
            data = self._file.read(offset, min(size, left))
            left -= len(data)
            try:
                with _convert_errors():
                    build_id = _build_id(self._structs, data)
            except ValueError:
                continue  # damaged notes hide those that follow in the same part
            if build_id:
                return build_id
        return ""

    @property
    def shape(self) -> str:
        """A number, in hex, that no file with other sections has."""
        table = repr((self._file.size, self._sections)).encode("utf-8", "surrogateescape")
        return hashlib.blake2b(table, digest_size=16).hexdigest()

    # ---- symbols ----

    @cached_property
    def _symbol_table(self) -> SymbolTable | None:
        for name in _SYMBOL_TABLES:
            section = self.section(name)
            if section is None or not section.has_content:
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
                    if s.flags & _ALLOCATED
                },
                is_64_bit=self._is_64_bit,
                little_endian=self.little_endian,
            )
        return None

    def function_named(self, name: str) -> int | None:
        """Return the link-time address of a function; None if the file has none of that name.

        Raises:
            ValueError: The symbol table is damaged.
        """
        table = self._symbol_table
        return table.address_of(name) if table is not None else None

    def own_function_named(self, name: str) -> int | None:
        """Return what ``function_named()`` does, but not one that is chosen at the start.

        Raises:
            ValueError: The symbol table is damaged.
        """
        table = self._symbol_table
        return table.address_of(name, PLAIN_FUNCTIONS) if table is not None else None

    def object_named(self, name: str) -> int | None:
        """Return the link-time address of a data object; None if the file has none of that name.

        Raises:
            ValueError: The symbol table is damaged.
        """
        table = self._symbol_table
        return table.address_of(name, OBJECTS) if table is not None else None

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
        """The ELF file in .gnu_debugdata: distributions leave functions there when they strip."""
        packed = self.content(".gnu_debugdata")
        return ElfFile(InMemory(unpack_xz(packed, _MAX_MINI))) if packed else None

    def has_dwarf(self) -> bool:
        """Tell whether the file has debug information."""
        return any(
            (section := self.section(name)) is not None and section.has_content
            for name in (".debug_info", ".zdebug_info", ".debug_info.dwo")
        )


class _NoteFile(NamedTuple):
    """The part of an `ELFFile` that pyelftools's `iter_notes` uses."""

    structs: ELFStructs
    stream: io.BytesIO
    elfclass: int


def _build_id(structs: ELFStructs, notes: bytes) -> str:
    file = cast("ELFFile", _NoteFile(structs, io.BytesIO(notes), structs.elfclass))
    for note in iter_notes(file, 0, len(notes)):
        if note["n_type"] == "NT_GNU_BUILD_ID" and note["n_name"] == "GNU" and note["n_desc"]:
            return str(note["n_desc"])[: 2 * _MAX_BUILD_ID]
    return ""


@cache
def _structs(little_endian: bool, elfclass: int) -> ELFStructs:
    """Return pyelftools's layouts; to make them takes 0.2 ms."""
    structs = ELFStructs(little_endian, elfclass)
    structs.create_basic_structs()
    structs.create_advanced_structs()
    return structs


@contextmanager
def _convert_errors() -> Iterator[None]:
    """Turn what pyelftools raises for damaged bytes into ValueError."""
    try:
        yield
    except (ELFError, ConstructError, LookupError, TypeError, OverflowError) as error:
        raise ValueError(f"no sound ELF file: {error}") from None


def _string(strings: bytes, offset: int) -> str:
    end = strings.find(b"\0", offset, offset + _MAX_SECTION_NAME)
    end = end if end >= 0 else offset + _MAX_SECTION_NAME
    return strings[offset:end].decode("utf-8", "replace")
