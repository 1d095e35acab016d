"""Files that a stranger names: opened only if they are regular, read without mapping them."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path


class OpenFile:
    """A regular file, open for reading; closed when nobody refers to it any more."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.about = os.fstat(fd)
        self.size = self.about.st_size

    def read_at(self, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes; fewer where the file ends. Raises OSError."""
        parts = []
        while size > 0 and (part := os.pread(self.fd, min(size, 1 << 30), offset)):
            parts.append(part)
            offset += len(part)
            size -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def directory(self) -> str:
        """Return the directory where the file really lies. Raises OSError."""
        return os.path.dirname(os.readlink(f"/proc/self/fd/{self.fd}"))

    def __del__(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self.fd)


def open_regular(path: str | Path) -> OpenFile | None:
    """Open a regular file; None for anything else, and where it cannot be opened.

    What the path leads to is looked at before it is opened: opening a FIFO may wait for ever, and
    opening a device may do something.
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
