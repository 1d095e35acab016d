"""Names and lines of compiled code out of a jit-PID.dump file, as perf's own format has it.

A compiler that writes one maps a page of it executable, which tells where the file lies. A record
is a header (type, size, time) and, by type, code that was made, moved, or the lines of code to
come; see tools/perf/Documentation/jitdump-specification.txt of the kernel.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import struct
import time
from collections.abc import Sequence

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
_PIECE = 1 << 20
_MAX_ENTRIES = 2_000_000
_MAX_LINES = 16 << 20  # bytes of the lines of one function
_LONGEST_NAME = 4096
_ENDED = 1 << 64  # nothing is read from there on
_AGAIN_S = 1.0

#: V8's own names, with a sign for how the code was made. It adds the size of an ELF header to the
#: addresses in optimized code (* and +), and those in other code are none of machine code.
_V8_NAME = re.compile(rb"[A-Z][A-Za-z]*:([~^*+-]?)")
_V8_OPTIMIZED = (b"*", b"+")
_V8_SHIFT = 64

Found = tuple[str, str | None, int | None]  # function, source file's base name, line


class JitDump:
    """The jitdump file of one process. Damaged ones are read up to the damage."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._fd = -1
        self._inode = 0
        self._forget()
        self._next_at = 0.0
        self.note = ""

    def _forget(self) -> None:
        self._index = CodeIndex()
        self._pieces: list[tuple[int, int, int]] = []  # record, that of its lines, how far it moved
        self._read = 0
        self._lines_at = (0, 0)  # an address, the record of lines that came for it

    def find(self, address: int, mappings: Sequence[Mapping]) -> Found | None:
        """Return what the code at an address is; what was written last is there now."""
        self._read_on(mappings)
        number = self._index.find(address)
        if number is None:
            return None
        record, lines, moved = self._pieces[number]
        with contextlib.suppress(OSError, struct.error, ValueError):
            head = os.pread(self._fd, _CODE.size + _LONGEST_NAME, record)
            name = head[_CODE.size :].partition(b"\0")[0]
            line = self._line(lines, name, address - moved) if lines else (None, None)
            return name.decode("utf-8", "replace"), *line
        return None

    def read_no_more(self) -> None:
        """Keep what is known: the process has ended, and another may come to its id."""
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
        self._next_at = now + _AGAIN_S
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
        fd = trusted_file.opened(self._pid, directory, name)
        if os.fstat(fd).st_ino != mapping.inode:
            os.close(fd)
            return
        self.close()
        self._forget()
        self._fd, self._inode = fd, mapping.inode
        magic, version, size = _FILE_HEADER.unpack(os.pread(fd, _FILE_HEADER.size, 0))
        self._read = size if magic == _MAGIC and version and size >= 40 else _ENDED

    def _read_records(self, size: int) -> None:
        piece, at = b"", self._read  # what was read ahead, and where it begins
        while self._read + _RECORD.size <= size:
            if len(self._index) >= _MAX_ENTRIES:
                self.note = "the jitdump file is too large: its later part is not read"
                return
            start = self._read - at
            if start + _MOVED.size > len(piece):
                piece, at, start = os.pread(self._fd, _PIECE, self._read), self._read, 0
            kind, length, _ = _RECORD.unpack_from(piece, start)
            if length < _RECORD.size:
                self.note = "the jitdump file is damaged: its later part is not read"
                self._read = _ENDED
                return
            if self._read + length > size:
                return  # it is being written
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
        self._pieces.append((record, lines, moved))

    # ---- lines ----

    def _line(self, record: int, name: bytes, address: int) -> tuple[str | None, int | None]:
        """Return the file and line of an address in the code of a record of lines."""
        made = _V8_NAME.match(name)
        if made is not None:
            if made[1] not in _V8_OPTIMIZED:
                return None, None
            address += _V8_SHIFT
        _, length, _ = _RECORD.unpack(os.pread(self._fd, _RECORD.size, record))
        if not _LINES.size <= length <= _MAX_LINES:
            return None, None
        data = os.pread(self._fd, length, record)
        _, entries = _LINES.unpack_from(data)
        found: tuple[str | None, int | None] = None, None
        best, file, at = -1, b"", _LINES.size
        for _ in range(entries):
            if at + _LINE.size >= len(data):
                break
            start, line, _ = _LINE.unpack_from(data, at)
            end = data.index(b"\0", at + _LINE.size)
            path, at = data[at + _LINE.size : end], end + 1
            file = file if path == _SAME_FILE else path
            if best <= start <= address:
                best, found = start, (_base_name(file), line or None)
        return found


def _base_name(path: bytes) -> str:
    return path.rpartition(b"/")[2].decode("utf-8", "replace")
