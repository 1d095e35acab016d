"""A process's shared memory, copied with pread: nothing is mapped, every offset is checked.

A mapping of a stranger's file could be cut off under us, and touching it would kill this
process with SIGBUS; a copy can only come out short, which is an error line.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from locktop.collector import native
from locktop.collector.errors import LocktopError
from locktop.collector.shm import layout

#: So much is copied on a mere word: some file systems tell late what a file takes.
_HARMLESS_BYTES = 128 << 20


class SharedMemory:
    """One open file, as it was at the last ``refresh()``.

    ``size`` is its size. That is the most it may grow to, so nearly all of it is a hole: ``most``
    is what anything in it can take, bytes. A forged count must not take all our memory.
    """

    def __init__(self, fd: int, path: str) -> None:
        self.fd = fd
        self.path = path
        self.size = self.max_bytes = 0
        self.refresh()

    def refresh(self) -> None:
        """Look at the file's size again: a look never reads beyond it."""
        about = os.fstat(self.fd)
        self.size = about.st_size
        self.max_bytes = max(_HARMLESS_BYTES, about.st_blocks * 512)

    def is_unlinked(self) -> bool:
        """Tell whether the file has lost its name: its process ended or executed another."""
        return os.fstat(self.fd).st_nlink == 0

    def same_file(self, other: SharedMemory) -> bool:
        """Tell whether both are open on one file."""
        return os.path.sameopenfile(self.fd, other.fd)

    def close(self) -> None:
        """Close the descriptor."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def read_into(self, target: memoryview, offset: int) -> None:
        """Fill ``target`` from ``offset``; raises LocktopError when that is not in the file."""
        done = 0
        self._check(offset, len(target))
        while done < len(target):
            got = os.preadv(self.fd, [target[done:]], offset + done)
            if got == 0:
                raise self.broken("it was cut off while being read")
            done += got

    def read(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes at ``offset``; raises LocktopError when the file ends before."""
        self._check(offset, size)
        data = os.pread(self.fd, size, offset)
        if len(data) != size:
            raise self.broken("it was cut off while being read")
        return data

    def _check(self, offset: int, size: int) -> None:
        if offset < 0 or size > self.max_bytes or offset + size > self.size:
            raise self.broken(f"{size} bytes at {offset} lie outside its {self.size}")

    def broken(self, why: str) -> LocktopError:
        """Return the error for a file that cannot be what it should be."""
        return LocktopError(
            f"{self.path}: truncated or damaged shared memory ({why}); restart the program"
            " under `locktop run`"
        )

    def header(self) -> layout.Header:
        """Return the header's scalars as they are now."""
        return layout.HEADER.at(self.read(0, layout.HEADER.size))

    def retire_seq(self) -> int:
        """Return the count that is odd while a dead thread's figures move."""
        return int.from_bytes(self.read(layout.RETIRE_SEQ_AT, 8), layout.BYTE_ORDER)

    def control(self) -> layout.Control:
        """Return the control page."""
        return layout.CONTROL.at(self.read(native.lib.LT_CONTROL_OFFSET, layout.CONTROL.size))


class GrowingArray:
    """A struct lt_array in the file, copied whole into one buffer that is kept."""

    def __init__(self, memory: SharedMemory, at: int, element_size: int) -> None:
        self._memory = memory
        self._at = at
        self._element_size = element_size
        self.count = 0
        self.data = bytearray()
        self._chunks: list[tuple[int, int]] = []  # (offset, bytes) of what is to be copied

    def refresh(self) -> None:
        """Read the array's head again: its count and where its chunks lie."""
        raw = self._memory.read(self._at, layout.ARRAY.size)
        head = layout.ARRAY.at(raw)
        offsets = layout.chunk_offsets(raw)
        if head.element_size != self._element_size or not 0 < head.first <= 1 << 20:
            raise self._memory.broken("an array's elements have another size")
        if head.count * head.element_size > self._memory.max_bytes:
            raise self._memory.broken(f"{head.count} elements in an array")
        self.count = head.count
        self._chunks = self._spans(head, offsets)
        if len(self.data) < head.count * self._element_size:
            room = max(head.count * self._element_size, len(self.data) * 3 // 2)
            self.data = bytearray(room)

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
        """Copy every element; return them (a view that the next copy overwrites)."""
        view, at = memoryview(self.data), 0
        for offset, size in self._chunks:
            self._memory.read_into(view[at : at + size], offset)
            at += size
        return view[:at]

    def offsets(self) -> Iterator[int]:
        """Return where each element lies in the file."""
        for offset, size in self._chunks:
            yield from range(offset, offset + size, self._element_size)
