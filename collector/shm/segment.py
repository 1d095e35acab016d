"""Copies a process's shared memory: every offset is checked.

The target may cut its file off at any time. A load from a mapping would then end this process with
SIGBUS. So Python code copies with pread, and C code copies with lt_copy(). A copy can only be too
short, and that becomes an error line.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from locktop.collector import native
from locktop.collector.errors import LocktopError
from locktop.collector.native import ffi, lib
from locktop.collector.shm import layout

#: A copy of this size is allowed in any case: some file systems update st_blocks late.
_HARMLESS_BYTES = 128 << 20
#: Memory that a mapping may give to holes of the file, at most. Freed tables leave a few holes.
_HOLE_BYTES = 64 << 20


class SharedMemory:
    """One open file, as it was at the last ``refresh()``.

    ``size`` is the size of the file in bytes. The target reserves the size that the file may grow
    to, so most of the file is a hole. ``max_bytes`` limits each copy to the bytes that the file
    takes. A forged count must not take all memory of this process.
    """

    def __init__(self, fd: int, path: str) -> None:
        self.fd = fd
        self.path = path
        self.size = self.max_bytes = 0
        self._mapping: Any = None  # struct lt_mapping *
        self._mappable = 0  # bytes
        self.refresh()

    def refresh(self) -> None:
        """Read the size of the file again. No read goes beyond this size."""
        status = os.fstat(self.fd)
        self.size = status.st_size
        self.max_bytes = max(_HARMLESS_BYTES, status.st_blocks * 512)
        with_holes = self._mappable or status.st_blocks * 512 + _HOLE_BYTES
        self._mappable = min(self.size, max(with_holes, status.st_blocks * 512))

    def is_unlinked(self) -> bool:
        """Tell whether the file has lost its name: the process ended or executed a program."""
        return os.fstat(self.fd).st_nlink == 0

    def same_file(self, other: SharedMemory) -> bool:
        """Tell whether both objects have the same file open."""
        return os.path.sameopenfile(self.fd, other.fd)

    def close(self) -> None:
        """Close the descriptor."""
        self._mapping = None
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def mapping(self) -> Any:
        """Return the file as a struct lt_mapping of C code.

        The caller keeps the object as long as C code uses it.
        """
        size = self._mapping.size if self._mapping is not None else 0
        if self._mapping is None or size > self._mappable or size < self._mappable // 16 * 15:
            mapping = ffi.new("struct lt_mapping *")
            lib.lt_map_file(self.fd, self._mappable, mapping)
            self._mapping = ffi.gc(mapping, lib.lt_unmap_file)
        return self._mapping

    def read_into(self, target: memoryview, offset: int) -> None:
        """Fill ``target`` from ``offset``. Raises LocktopError when the file ends before."""
        done = 0
        self._check(offset, len(target))
        while done < len(target):
            got = os.preadv(self.fd, [target[done:]], offset + done)
            if got == 0:
                raise self.broken("it was cut off while being read")
            done += got

    def read(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes at ``offset``. Raises LocktopError when the file ends before."""
        self._check(offset, size)
        data = os.pread(self.fd, size, offset)
        if len(data) != size:
            raise self.broken("it was cut off while being read")
        return data

    def _check(self, offset: int, size: int) -> None:
        if offset < 0 or size > self.max_bytes or offset + size > self.size:
            raise self.broken(f"{size} bytes at {offset} lie outside its {self.size}")

    def broken(self, reason: str) -> LocktopError:
        """Return the error for a damaged file."""
        return LocktopError(
            f"{self.path}: truncated or damaged shared memory ({reason}); restart the program"
            " under `locktop run`"
        )

    def header(self) -> layout.Header:
        """Return the present scalars of the header."""
        return layout.HEADER.unpack(self.read(0, layout.HEADER.size))

    def retire_seq(self) -> int:
        """Return the sequence count that is odd while the target moves a dead thread's figures."""
        return int.from_bytes(self.read(layout.RETIRE_SEQ_AT, 8), layout.BYTE_ORDER)

    def control(self) -> layout.Control:
        """Return the control page."""
        return layout.CONTROL.unpack(self.read(native.lib.LT_CONTROL_OFFSET, layout.CONTROL.size))


class GrowingArray:
    """A struct lt_array of the file, copied into one buffer that is used again."""

    def __init__(self, memory: SharedMemory, start: int, element_size: int) -> None:
        self._memory = memory
        self._offset = start
        self._element_size = element_size
        self.count = 0
        self.data = bytearray()
        self._chunks: list[tuple[int, int]] = []  # (offset, bytes) of each part to copy

    def refresh(self) -> None:
        """Read the array's head again: the count and the offsets of the chunks.

        Raises: LocktopError for a damaged file.
        """
        raw = self._memory.read(self._offset, layout.ARRAY.size)
        head = layout.ARRAY.unpack(raw)
        offsets = layout.chunk_offsets(raw)
        if head.element_size != self._element_size or not 0 < head.first <= 1 << 20:
            raise self._memory.broken("an array's elements have another size")
        if head.count * head.element_size > self._memory.max_bytes:
            raise self._memory.broken(f"{head.count} elements in an array")
        self.count = head.count
        self._chunks = self._spans(head, offsets)

    def _spans(self, head: layout.ArrayHead, offsets: tuple[int, ...]) -> list[tuple[int, int]]:
        spans, left, size = [], head.count, head.first
        for offset in offsets:
            if left <= 0:
                break
            if offset == 0 or offset % 8:
                raise self._memory.broken("an array has no chunk where its elements should be")
            spans.append((offset, min(left, size) * self._element_size))
            left, size = left - size, size * 2
        if left > 0:
            raise self._memory.broken("an array counts more than its chunks hold")
        return spans

    def copy(self) -> memoryview:
        """Copy all elements and return them. The next copy overwrites the returned view."""
        if len(self.data) < self.count * self._element_size:
            self.data = bytearray(max(self.count * self._element_size, len(self.data) * 3 // 2))
        view, end = memoryview(self.data), 0
        for offset, size in self._chunks:
            self._memory.read_into(view[end : end + size], offset)
            end += size
        return view[:end]

    def offsets(self) -> Iterator[int]:
        """Yield the offset of each element in the file."""
        for offset, size in self._chunks:
            yield from range(offset, offset + size, self._element_size)
