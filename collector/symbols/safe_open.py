"""Files with foreign names: opened only if they are regular, and read without a mapping."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path


class OpenFile:
    """A regular file, open for reading; closed with the last reference to it."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.about = os.fstat(fd)
        self.size = self.about.st_size

    def read_at(self, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes at an offset; fewer where the file ends. Raises OSError."""
        parts = []
        while size > 0 and (part := os.pread(self.fd, min(size, 1 << 30), offset)):
            parts.append(part)
            offset += len(part)
            size -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def directory(self) -> str:
        """Return the directory of the file, without symbolic links. Raises OSError."""
        return os.path.dirname(os.readlink(f"/proc/self/fd/{self.fd}"))

    def __del__(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self.fd)


def open_regular(path: str | Path) -> OpenFile | None:
    """Open a regular file; None for anything else, or if it cannot be opened.

    The type is checked before. To open a FIFO may wait for ever, and to open a device may have an
    effect.
    """
    try:
        found = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (OSError, ValueError):  # a name with a NUL in it
        return None
    try:
        if not stat.S_ISREG(os.fstat(found).st_mode):
            return None
        return OpenFile(os.open(f"/proc/self/fd/{found}", os.O_RDONLY | os.O_CLOEXEC))
    except OSError:
        return None
    finally:
        os.close(found)
