"""Names of compiled code from /tmp/perf-PID.map, which Node.js, JVMs and others write for perf.

The lines are "START SIZE name", in hex. The file grows while the program compiles; each part is
read once.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import time

from locktop.collector.linux import procfs
from locktop.collector.symbols.jit import trusted_file
from locktop.collector.symbols.jit.code_index import CodeIndex

_LINE = re.compile(
    rb"^(?:0x)?([0-9a-fA-F]{1,16})[ \t]+(?:0x)?([0-9a-fA-F]{1,16})[ \t]+(\S[^\n]*)", re.MULTILINE
)
_READ_SIZE = 1 << 20
MAX_FILE = 256 << 20  # bytes read of one file
_MAX_ENTRIES = 2_000_000
_MAX_LINE = 4096
_TAIL = 64  # bytes that say whether a file still is the one that was read
READ_AGAIN_S = 1.0


class PerfMap:
    """The perf map of one process.

    Args:
        pid: The process.
        read_again_s: The file is read again after this time.
        max_file: Bytes that are read of the file.
    """

    def __init__(
        self, pid: int, read_again_s: float = READ_AGAIN_S, max_file: int = MAX_FILE
    ) -> None:
        self._pid = pid
        self._read_again_s = read_again_s
        self._max_file = max_file
        self._fd = -1
        self._index = CodeIndex()
        self._read = 0
        self._tail = b""
        self._next_at = 0.0
        self._name = ""
        self.note = ""

    def find(self, address: int) -> str | None:
        """Return the name of the code at an address; the line that was written last is valid."""
        self._read_on()
        offset = self._index.find(address)
        if offset is None:
            return None
        with contextlib.suppress(OSError):
            line = _LINE.match(os.pread(self._fd, _MAX_LINE, offset))
            if line is not None and 0 <= address - int(line[1], 16) < int(line[2], 16):
                return line[3].decode("utf-8", "replace")
        return None  # the file was overwritten meanwhile

    def read_no_more(self) -> None:
        """Read the file no more: the process has ended, and another one may get its id."""
        self._next_at = math.inf

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _read_on(self) -> None:
        now = time.monotonic()
        if now < self._next_at:
            return
        self._next_at = now + self._read_again_s
        with contextlib.suppress(OSError):
            self._open()
            self._read_lines(os.fstat(self._fd).st_size)

    def _open(self) -> None:
        """Open the file, unless it is open already."""
        if not self._name:
            self._name = f"perf-{procfs.status(self._pid).namespace_pids[-1]}.map"
        fd = trusted_file.open_trusted(self._pid, "/tmp", self._name)
        about = os.fstat(fd)
        if self._is_open(about):
            os.close(fd)
            return
        if not trusted_file.is_of_this_process(self._pid, about):
            os.close(fd)
            raise FileNotFoundError(self._name)
        self.close()
        self._fd, self._index, self._read, self._tail = fd, CodeIndex(), 0, b""

    def _is_open(self, about: os.stat_result) -> bool:
        """Tell whether a file is the open one: some programs write a new file each time."""
        if self._fd < 0 or about.st_size < self._read:
            return False
        open_file = os.fstat(self._fd)
        same = (about.st_dev, about.st_ino) == (open_file.st_dev, open_file.st_ino)
        return same and self._read_tail() == self._tail

    def _read_tail(self) -> bytes:
        start = max(0, self._read - _TAIL)
        return os.pread(self._fd, self._read - start, start)

    def _read_lines(self, size: int) -> None:
        while self._read < size:
            if self._read >= self._max_file or len(self._index) >= _MAX_ENTRIES:
                self.note = f"/tmp/{self._name} is too large: its later part is not read"
                break
            piece = os.pread(self._fd, _READ_SIZE, self._read)
            end = piece.rfind(b"\n") + 1
            if not end and len(piece) < _READ_SIZE:
                break  # the line is being written
            for line in _LINE.finditer(piece, 0, end):
                start, length = int(line[1], 16), int(line[2], 16)
                self._index.add(start, length, self._read + line.start())
            self._read += end or len(piece)
        self._tail = self._read_tail()
