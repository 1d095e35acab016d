"""Files that are read now and then: few of them are open at a time."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from pathlib import Path

from locktop.collector.linux.regular_file import open_regular

#: Files of one pool that are open at once. A usual ring has fewer segments.
MAX_OPEN = 16


class PooledFile:
    """A regular file, open for reading while the pool has room. Any thread may read."""

    def __init__(self, path: Path, pool: FilePool) -> None:
        """Open the file.

        Raises:
            OSError: the file cannot be opened, or is not regular. ``strerror`` has the reason.
        """
        self.path = path
        self._pool = pool
        self._identity: tuple[int, int] | None = None
        with pool.lock:
            about = os.fstat(pool.descriptor(self))
        #: Bytes of the file when it was opened.
        self.size = about.st_size
        self._identity = about.st_dev, about.st_ino

    def read(self, size: int, offset: int) -> bytes:
        """Return ``size`` bytes at ``offset``, or fewer at the end of the file.

        Raises:
            OSError: the file cannot be read, or another file is in its place now.
        """
        with self._pool.lock:
            return os.pread(self._pool.descriptor(self), size, offset)

    def close(self) -> None:
        """Close the file. A later read opens the file again."""
        with self._pool.lock:
            self._pool.forget(self)

    def open(self) -> int:
        """Return a new descriptor of this very file. Raises OSError."""
        descriptor = open_regular(self.path, follow_link=True)
        about = os.fstat(descriptor)
        if self._identity in (None, (about.st_dev, about.st_ino)):
            return descriptor
        os.close(descriptor)
        raise OSError(0, "another file took its place")


class FilePool:
    """The descriptors of files. The file that was read the longest ago is closed first."""

    def __init__(self, max_open: int = MAX_OPEN) -> None:
        self.lock = threading.Lock()
        self._max_open = max_open
        self._open: OrderedDict[PooledFile, int] = OrderedDict()

    def descriptor(self, file: PooledFile) -> int:
        """Return the descriptor of a file. The caller has the lock. Raises OSError."""
        if file in self._open:
            self._open.move_to_end(file)
            return self._open[file]
        if len(self._open) >= self._max_open:
            os.close(self._open.popitem(last=False)[1])
        self._open[file] = descriptor = file.open()
        return descriptor

    def forget(self, file: PooledFile) -> None:
        """Close the descriptor of a file, if there is one. The caller has the lock."""
        descriptor = self._open.pop(file, None)
        if descriptor is not None:
            os.close(descriptor)
