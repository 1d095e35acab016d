"""The bytes of an ELF file, with bounds on what a forged file can make the reader read.

pyelftools reads nothing from the file itself. pyelftools gets a stream of bytes that were read
here, and such a stream ends where they end.
"""

from __future__ import annotations

from typing import Protocol

from locktop.collector.errors import reason_of

#: Bytes of one read, and of all reads of one file.
MAX_READ = 512 << 20
_MAX_TOTAL = 2 * MAX_READ


class ByteSource(Protocol):
    """Where the bytes of a file come from."""

    size: int

    def read_at(self, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes; fewer where the file ends. May raise OSError."""


class InMemory:
    """A source that is a bytes object."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    def read_at(self, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes; fewer where the data ends."""
        return self._data[offset : offset + size]


class BoundedFile:
    """A source whose reads are checked against its size and, in total, against a budget."""

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._total = 0
        self.size = source.size

    def read(self, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes; fewer where the file ends.

        Raises:
            ValueError: The file cannot be read, or the budget is spent.
        """
        size = min(size, max(0, self.size - offset))
        self.reserve(size)
        return self.read_unbudgeted(offset, size)

    def read_unbudgeted(self, offset: int, size: int) -> bytes:
        """As `read()`, but the bytes do not count: the caller reads the same part repeatedly."""
        try:
            return self._source.read_at(offset, min(size, MAX_READ))
        except OSError as error:
            raise ValueError(f"cannot be read: {reason_of(error)}") from None

    def reserve(self, size: int) -> None:
        """Count bytes that are read, or that compressed content unpacks to.

        Raises:
            ValueError: One part, or all parts together, are larger than the bounds.
        """
        self._total += size
        if size > MAX_READ or self._total > _MAX_TOTAL:
            raise ValueError("its sections are larger than is sane")
