"""The symbols of one ELF file: functions and data objects by address."""

from __future__ import annotations

import struct
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any, BinaryIO

_STT_OBJECT, _STT_FUNC, _STT_COMMON, _STT_TLS, _STT_GNU_IFUNC = 1, 2, 5, 6, 10
_SYMBOL_TABLES = (".symtab", ".dynsym")  # the fuller one first
#: Bytes of one section; a forged size must not take all our memory.
_MOST_SECTION = 512 << 20


@dataclass(frozen=True, slots=True)
class Segment:
    """A loadable segment: ``file_size`` bytes at ``offset`` lie at ``address``."""

    offset: int
    file_size: int
    address: int
    memory_size: int


@dataclass(frozen=True, slots=True)
class Symbol:
    """A function or an object."""

    address: int
    size: int
    name: str  # as in the file: mangled


class SymbolTable:
    """Symbols sorted by address; their names are decoded when asked for.

    With ``reach`` a symbol without a size (a function written in assembler) reaches to the next.
    """

    def __init__(
        self,
        entries: list[tuple[int, int, int, int, int]],
        names: list[bytes],
        reach: bool = False,
    ) -> None:
        self._reach = reach
        # (address, -size, rank, table, name offset): of several at one address the best comes first
        entries.sort()
        self._entries = entries
        self._addresses = [entry[0] for entry in entries]
        self._names = names

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, address: int) -> Symbol | None:
        """Return the symbol that covers the address."""
        at = bisect_right(self._addresses, address) - 1
        if at < 0:
            return None
        start = self._addresses[at]
        first = at
        while first > 0 and self._addresses[first - 1] == start:
            first -= 1
        size = -self._entries[first][1]
        if address >= start + size and address != start:
            last = at + 1 == len(self._entries)
            if size or last or not self._reach:
                return None
        return Symbol(start, size, self._best_name(first, at))

    def _best_name(self, first: int, last: int) -> str:
        best_rank = self._entries[first][2]
        same = [e for e in self._entries[first : last + 1] if e[2] == best_rank]
        names = [self._name(entry[3], entry[4]) for entry in same]
        return min(names, key=lambda name: (len(name) - len(name.lstrip("_")), len(name), name))

    def _name(self, table: int, offset: int) -> str:
        strings = self._names[table]
        end = strings.find(b"\0", offset)
        return strings[offset : end if end >= 0 else len(strings)].decode("utf-8", "replace")


class ElfFile:
    """One opened file. The constructor raises ValueError when it is no sound ELF file."""

    def __init__(self, file: BinaryIO) -> None:
        from elftools.elf.elffile import ELFFile

        self._file = file
        try:
            self.elf: Any = ELFFile(file)
            self.segments = _segments(self.elf)
            self.build_id = _build_id(self.elf)
        except Exception as error:  # pyelftools raises nearly anything over a damaged file
            raise ValueError(f"not a sound ELF file: {error}") from None
        self._functions: SymbolTable | None = None
        self._objects: SymbolTable | None = None

    def bias(self, start: int, offset: int) -> int | None:
        """Return how far from its link-time addresses the file lies when ``offset`` of it is mapped
        at ``start``; None when nothing of it is loaded from there."""
        page = 0xFFF  # mappings begin at pages, segments need not
        for segment in self.segments:
            if segment.offset & ~page == offset:
                return start - (offset - segment.offset + segment.address)
        return None

    def loaded(self, address: int) -> bool:
        """Whether a link-time address belongs to the file's memory, zeroed data included."""
        return any(s.address <= address < s.address + s.memory_size for s in self.segments)

    def functions(self) -> SymbolTable:
        """Return the functions."""
        if self._functions is None:
            self._load()
        assert self._functions is not None
        return self._functions

    def objects(self) -> SymbolTable:
        """Return the data objects."""
        if self._objects is None:
            self._load()
        assert self._objects is not None
        return self._objects

    def _load(self) -> None:
        functions: list[tuple[int, int, int, int, int]] = []
        objects: list[tuple[int, int, int, int, int]] = []
        names: list[bytes] = []
        try:
            for title in _SYMBOL_TABLES:
                section = self.elf.get_section_by_name(title)
                if section is not None and section["sh_type"] != "SHT_NOBITS":
                    _collect(self.elf, section, functions, objects, names)
        except Exception:  # what was read until here still serves
            pass
        self._functions = SymbolTable(functions, names, reach=True)
        self._objects = SymbolTable(objects, names)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _segments(elf: Any) -> tuple[Segment, ...]:
    return tuple(
        Segment(s["p_offset"], s["p_filesz"], s["p_vaddr"], s["p_memsz"])
        for s in elf.iter_segments()
        if s["p_type"] == "PT_LOAD"
    )


def _build_id(elf: Any) -> str:
    section = elf.get_section_by_name(".note.gnu.build-id")
    if section is None:
        return ""
    for note in section.iter_notes():
        if note["n_type"] == "NT_GNU_BUILD_ID":
            return str(note["n_desc"])
    return ""


def _collect(
    elf: Any,
    section: Any,
    functions: list[tuple[int, int, int, int, int]],
    objects: list[tuple[int, int, int, int, int]],
    names: list[bytes],
) -> None:
    """Unpack a symbol table at once: one object for each symbol would take seconds."""
    if section["sh_size"] > _MOST_SECTION or section["sh_entsize"] not in (16, 24):
        return
    data, table = section.data(), len(names)
    names.append(elf.get_section(section["sh_link"]).data())
    order = "<" if elf.little_endian else ">"
    wide = section["sh_entsize"] == 24
    layout = struct.Struct(order + ("IBBHQQ" if wide else "IIIBBH"))
    usable = len(data) - len(data) % layout.size
    for fields in layout.iter_unpack(data[:usable]):
        if wide:
            name, info, _, where, address, size = fields
        else:
            name, address, size, info, _, where = fields
        if not where or not name:
            continue  # undefined here
        kind, binding = info & 0xF, info >> 4
        rank = 2 * table + (binding == 0)  # local names after global ones
        if kind in (_STT_FUNC, _STT_GNU_IFUNC):
            functions.append((address, -size, rank, table, name))
        elif kind in (_STT_OBJECT, _STT_COMMON):
            objects.append((address, -size, rank, table, name))
