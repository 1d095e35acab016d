"""The tables of a core dump: its segments, its threads and the files that were mapped (core(5)).

The numbers of a forged file are checked, and no table is read beyond a bound. The memory of the
process is never read as a whole: a core may have many gigabytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from locktop.collector.errors import LocktopError, reason_of
from locktop.collector.symbols.safe_open import OpenFile, open_regular

MAGIC = b"\x7fELF"
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
_NOTE_HEADER = struct.Struct("<III")
_CORE, _X86_64 = 4, 62  # ET_CORE, EM_X86_64
_64_BITS, _LITTLE_ENDIAN = 2, 1  # EI_CLASS, EI_DATA
_PT_LOAD, _PT_NOTE = 1, 4
_MANY = 0xFFFF  # PN_XNUM: the first section has the number of program headers
#: Kernels allow 65,530 mappings (vm.max_map_count), but administrators raise that.
_MAX_SEGMENTS = 1 << 20
_MAX_NOTES = 1 << 20  # some four for each thread
_MAX_NOTE = 64 << 20  # bytes: the paths of 65,530 mappings
_WANTED_NOTES = {
    (b"CORE", 1): "PRSTATUS",
    (b"CORE", 3): "PRPSINFO",
    (b"CORE", 6): "AUXV",
    (b"CORE", 0x46494C45): "FILE",
}


class SavedSegment(NamedTuple):
    """A part of memory; the core has its first ``file_size`` bytes at ``offset``."""

    start: int
    end: int
    offset: int
    file_size: int
    flags: int  # PF_R 4, PF_W 2, PF_X 1


class MappedRange(NamedTuple):
    """A part of memory into which a file was mapped."""

    start: int
    end: int
    offset: int  # in the file
    path: bytes


class CoreFile:
    """One core dump.

    Attributes:
        file: The open file.
        segments: The parts of memory, by address.
        notes: The contents of the notes, in the order of the file: name and bytes.
        missing_bytes: How many bytes of memory the file lacks because it was cut.
    """

    def __init__(self, path: str) -> None:
        """Raises:
        LocktopError: the file cannot be read, or it is no core that locktop understands.
        """
        self._path = path
        file = open_regular(path)
        if file is None:
            raise LocktopError(f"{path}: it cannot be opened")
        self.file: OpenFile = file
        try:
            headers = self._program_headers()
            self.segments = sorted(
                SavedSegment(address, address + memory_size, offset, file_size, flags)
                for kind, flags, offset, address, _, file_size, memory_size, _ in headers
                if kind == _PT_LOAD and memory_size > 0 and address + memory_size <= 1 << 64
            )
            ranges = [(header[2], header[5]) for header in headers if header[0] == _PT_NOTE]
            self.notes = [note for offset, size in ranges for note in self._notes(offset, size)]
        except OSError as error:
            raise LocktopError(f"{path}: {reason_of(error)}") from None
        end = max((s.offset + s.file_size for s in self.segments), default=0)
        self.missing_bytes = max(0, end - file.size)
        if not any(name == "PRSTATUS" for name, _ in self.notes):
            raise self.damaged("it has no threads" + ", for it was cut" * bool(self.missing_bytes))

    def damaged(self, why: str) -> LocktopError:
        return LocktopError(f"{self._path}: this core is damaged: {why}")

    def _program_headers(self) -> list[tuple[int, ...]]:
        head = self.file.read_at(0, _HEADER.size)
        if head[:4] != MAGIC:
            raise LocktopError(f"{self._path}: this is no core dump")
        if len(head) > 5 and (head[4], head[5]) != (_64_BITS, _LITTLE_ENDIAN):
            raise LocktopError(f"{self._path}: this is no file of a 64-bit x86 program")
        if len(head) < _HEADER.size:
            raise self.damaged("its header is cut")
        _, kind, machine, _, _, offset, sections, _, _, size, count, *_ = _HEADER.unpack(head)
        if kind != _CORE:
            raise LocktopError(f"{self._path}: this is a program or a library, no core dump")
        if machine != _X86_64:
            raise LocktopError(f"{self._path}: this core is of another processor than x86-64")
        if size != _PROGRAM_HEADER.size:
            raise self.damaged("its segments are of an unknown size")
        if count == _MANY:
            section = self.file.read_at(sections, _SECTION_HEADER.size)
            if len(section) < _SECTION_HEADER.size:
                raise self.damaged("its number of segments is cut")
            count = _SECTION_HEADER.unpack(section)[7]
        if count > _MAX_SEGMENTS:
            raise self.damaged(f"it claims {count:,} segments")
        data = self.file.read_at(offset, count * size) if offset < self.file.size else b""
        if len(data) < count * size:
            raise self.damaged("its table of segments is cut")
        return list(_PROGRAM_HEADER.iter_unpack(data))

    def _notes(self, offset: int, size: int) -> Iterator[tuple[str, bytes]]:
        """Yield the notes of one segment that locktop uses."""
        end = min(offset + size, self.file.size)
        for _ in range(_MAX_NOTES):
            if offset + _NOTE_HEADER.size > end:
                return
            header = self.file.read_at(offset, _NOTE_HEADER.size + 8)
            name_size, data_size, kind = _NOTE_HEADER.unpack_from(header)
            begin = offset + _NOTE_HEADER.size + _round_up(name_size)
            offset = begin + _round_up(data_size)
            owner = header[_NOTE_HEADER.size :][: min(name_size, 8)].rstrip(b"\0")
            name = _WANTED_NOTES.get((owner, kind))
            if name is not None and data_size <= _MAX_NOTE and begin + data_size <= end:
                yield name, self.file.read_at(begin, data_size)


def _round_up(size: int) -> int:
    return (size + 3) & ~3


def mapped_ranges(note: bytes) -> list[MappedRange]:
    """Return the mapped files of an NT_FILE note; the part before damage."""
    word = struct.Struct("<Q")
    if len(note) < 16:
        return []
    (count,), (page,) = word.unpack_from(note, 0), word.unpack_from(note, 8)
    row = struct.Struct("<QQQ")
    count = min(count, (len(note) - 16) // row.size)
    names = note[16 + count * row.size :].split(b"\0")
    rows = row.iter_unpack(note[16 : 16 + count * row.size])
    return [
        MappedRange(start, end, offset * page, name)
        for (start, end, offset), name in zip(rows, names, strict=False)
        if name and start < end and offset * page < 1 << 63
    ]
