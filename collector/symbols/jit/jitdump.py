"""Names and lines of compiled code from a jit-PID.dump file, which has perf's format.

A compiler that writes the file maps a page of it executable, so the memory map has its path. A
record is a header (type, size, time) and a body. The body, by type, is code that was made, code
that was moved, or lines of code to come. The format is in
tools/perf/Documentation/jitdump-specification.txt of the kernel.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import struct
import time
from collections.abc import Sequence
from typing import NamedTuple

from locktop.collector.symbols.jit import trusted_file
from locktop.collector.symbols.jit.code_index import CodeIndex
from locktop.collector.symbols.memory_map import Mapping

_FILE_NAME = re.compile(r"jit-\d+\.dump")
_MAGIC = 0x4A695444
_FILE_HEADER = struct.Struct("=III")  # magic, version, size of the header
_RECORD = struct.Struct("=IIQ")  # type, size, time
_LOAD, _MOVE, _DEBUG = 0, 1, 2
_CODE = struct.Struct("=16xIIQQQQ")  # pid, tid, vma, address, size, number; the name follows
_MOVED = struct.Struct("=16xIIQQQQQ")  # pid, tid, vma, from, to, size, number
_LINES = struct.Struct("=16xQQ")  # address, entries
_LINE = struct.Struct("=QII")  # address, line, discriminator; the file's name follows
_SAME_FILE = b"\xff"
_READ_SIZE = 1 << 20
_MAX_ENTRIES = 2_000_000
_MAX_LINES = 16 << 20  # bytes of the lines of one function
_MAX_NAME = 4096
_UNREADABLE = 1 << 64  # an offset from which nothing is read
READ_AGAIN_S = 1.0

#: V8's names, with a sign for the compiler that made the code. V8 adds the size of an ELF header to
#: the addresses in optimized code (* and +). Addresses in other code are not those of machine code.
_V8_NAME = re.compile(rb"[A-Z][A-Za-z]*:([~^*+-]?)")
_V8_OPTIMIZED = (b"*", b"+")
_V8_SHIFT = 64


class JitFunction(NamedTuple):
    """A function of compiled code."""

    function: str
    file: str | None  # base name of the source file
    line: int | None


class _CodePiece(NamedTuple):
    record: int  # offset of the record of the code
    lines: int  # offset of the record of its lines; 0 for none
    moved: int  # by how many bytes the code moved


class JitDump:
    """The jitdump file of one process; a damaged file is read up to the damage.

    Args:
        pid: The process.
        read_again_s: The file is read again after this time.
    """

    def __init__(self, pid: int, read_again_s: float = READ_AGAIN_S) -> None:
        self._pid = pid
        self._read_again_s = read_again_s
        self._fd = -1
        self._inode = 0
        self._forget()
        self._next_at = 0.0
        self.note = ""

    def _forget(self) -> None:
        self._index = CodeIndex()
        self._pieces: list[_CodePiece] = []
        self._read = 0
        self._lines_at = (0, 0)  # an address, and the record of the lines for it

    def find(self, address: int, mappings: Sequence[Mapping]) -> JitFunction | None:
        """Return the function at an address; the record that was written last is valid."""
        self._read_on(mappings)
        number = self._index.find(address)
        if number is None:
            return None
        record, lines, moved = self._pieces[number]
        with contextlib.suppress(OSError, struct.error, ValueError):
            head = os.pread(self._fd, _CODE.size + _MAX_NAME, record)
            name = head[_CODE.size :].partition(b"\0")[0]
            line = self._line(lines, name, address - moved) if lines else (None, None)
            return JitFunction(name.decode("utf-8", "replace"), *line)
        return None

    def read_no_more(self) -> None:
        """Read the file no more: the process has ended, and another one may get its id."""
        self._next_at = math.inf

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    # ---- the file ----

    def _read_on(self, mappings: Sequence[Mapping]) -> None:
        now = time.monotonic()
        if now < self._next_at:
            return
        self._next_at = now + self._read_again_s
        with contextlib.suppress(OSError, struct.error):
            for mapping in mappings:
                path, name = os.path.split(mapping.path)
                if mapping.executable and _FILE_NAME.fullmatch(name):
                    self._open(mapping, path, name)
                    break
            if self._fd >= 0:
                self._read_records(os.fstat(self._fd).st_size)

    def _open(self, mapping: Mapping, directory: str, name: str) -> None:
        if self._fd >= 0 and mapping.inode == self._inode:
            return
        fd = trusted_file.open_trusted(self._pid, directory, name)
        if os.fstat(fd).st_ino != mapping.inode:
            os.close(fd)
            return
        self.close()
        self._forget()
        self._fd, self._inode = fd, mapping.inode
        magic, version, size = _FILE_HEADER.unpack(os.pread(fd, _FILE_HEADER.size, 0))
        self._read = size if magic == _MAGIC and version and size >= 40 else _UNREADABLE

    def _read_records(self, size: int) -> None:
        piece, piece_at = b"", self._read  # bytes that were read ahead, and their offset
        while self._read + _RECORD.size <= size:
            if len(self._index) >= _MAX_ENTRIES:
                self.note = "the jitdump file is too large: its later part is not read"
                return
            start = self._read - piece_at
            if start + _MOVED.size > len(piece):
                piece, piece_at, start = os.pread(self._fd, _READ_SIZE, self._read), self._read, 0
            kind, length, _ = _RECORD.unpack_from(piece, start)
            if length < _RECORD.size:
                self.note = "the jitdump file is damaged: its later part is not read"
                self._read = _UNREADABLE
                return
            if self._read + length > size:
                return  # the record is being written
            self._take(kind, length, piece[start : start + min(length, _MOVED.size)])
            self._read += length

    def _take(self, kind: int, length: int, head: bytes) -> None:
        if kind == _DEBUG and _LINES.size <= length <= _MAX_LINES:
            address, _ = _LINES.unpack_from(head)
            self._lines_at = address, self._read
        elif kind == _LOAD and length > _CODE.size:
            *_, address, size, _ = _CODE.unpack_from(head)
            lines = self._lines_at[1] if self._lines_at[0] == address else 0
            self._lines_at = 0, 0
            self._add(address, size, self._read, lines, 0)
        elif kind == _MOVE and length >= _MOVED.size:
            *_, old, new, size, _ = _MOVED.unpack_from(head)
            number = self._index.find(old)
            if number is not None:
                record, lines, moved = self._pieces[number]
                self._add(new, size, record, lines, moved + new - old)

    def _add(self, address: int, size: int, record: int, lines: int, moved: int) -> None:
        self._index.add(address, size, len(self._pieces))
        self._pieces.append(_CodePiece(record, lines, moved))

    # ---- lines ----

    def _line(self, record: int, name: bytes, address: int) -> tuple[str | None, int | None]:
        """Return the file and the line of an address, from a record of lines."""
        v8_name = _V8_NAME.match(name)
        if v8_name is not None:
            if v8_name[1] not in _V8_OPTIMIZED:
                return None, None
            address += _V8_SHIFT
        _, length, _ = _RECORD.unpack(os.pread(self._fd, _RECORD.size, record))
        if not _LINES.size <= length <= _MAX_LINES:
            return None, None
        data = os.pread(self._fd, length, record)
        _, entries = _LINES.unpack_from(data)
        location: tuple[str | None, int | None] = None, None
        best, file, position = -1, b"", _LINES.size
        for _ in range(entries):
            if position + _LINE.size >= len(data):
                break
            start, line, _ = _LINE.unpack_from(data, position)
            end = data.index(b"\0", position + _LINE.size)
            path, position = data[position + _LINE.size : end], end + 1
            file = file if path == _SAME_FILE else path
            if best <= start <= address:
                best, location = start, (_base_name(file), line or None)
        return location


def _base_name(path: bytes) -> str:
    return path.rpartition(b"/")[2].decode("utf-8", "replace")
