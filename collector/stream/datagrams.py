"""The datagrams of a stream over UDP, and the frames made of them.

docs/internals/stream.md describes the layout. All numbers are little-endian.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from msgspec import Struct

from locktop.collector.stream.stream_frames import MAX_FRAME

#: Bytes of a datagram with its header. IPv6 carries 1,280 bytes everywhere, with all headers.
DEFAULT_SIZE = 1200
SMALLEST, LARGEST = 200, 60_000
MAGIC = b"LTDG"
VERSION = 1
#: magic, version, 0, 0, stream, datagram number, frame number, part, parts, CRC-32.
_HEADER = struct.Struct("<4sBBHQQIHHI")
_CRC_AT = _HEADER.size - 4
_MAX_PARTS = (1 << 16) - 1
#: Frames under construction at one time.
_MAX_OPEN = 4
#: Missing numbers that may still arrive; a number this far ahead is forged.
_MAX_MISSING = 4096
_MAX_LEAP = 1 << 20


class DatagramHeader(Struct, frozen=True, gc=False):
    """The header of one datagram."""

    stream: int  # random, of one run of the sender
    number: int  # of the datagram in its stream, from 0 on
    frame: int  # number of the frame in its stream, from 0 on
    part: int  # of the frame, from 0 on
    parts: int


def split(frame: bytes, stream: int, frame_number: int, first: int, size: int) -> Iterator[bytes]:
    """Yield the datagrams of a frame.

    Args:
        frame: a whole frame.
        stream: the id of the stream.
        frame_number: of this frame.
        first: the number of the first datagram.
        size: bytes of a datagram at most.
    """
    room = size - _HEADER.size
    parts = -(-len(frame) // room)
    for part in range(parts):
        head = _HEADER.pack(
            MAGIC, VERSION, 0, 0, stream, first + part, frame_number, part, parts, 0
        )[:_CRC_AT]
        data = frame[part * room : (part + 1) * room]
        checksum = zlib.crc32(data, zlib.crc32(head))
        yield b"".join((head, checksum.to_bytes(4, "little"), data))


def parse(datagram: bytes) -> tuple[DatagramHeader, bytes] | None:
    """Return the header and the part of the frame; None for a damaged or foreign datagram."""
    if len(datagram) <= _HEADER.size:
        return None
    magic, version, flags, more, stream, number, frame, part, parts, checksum = _HEADER.unpack_from(
        datagram
    )
    if magic != MAGIC or version != VERSION or flags or more or part >= parts:
        return None
    data = datagram[_HEADER.size :]
    if zlib.crc32(data, zlib.crc32(datagram[:_CRC_AT])) != checksum:
        return None
    return DatagramHeader(stream, number, frame, part, parts), data


def most_parts(size: int) -> int:
    """Return how many bytes a frame has at most in datagrams of ``size`` bytes."""
    return min(MAX_FRAME, _MAX_PARTS * (size - _HEADER.size))


class DatagramCounts:
    """Counts the datagrams of one stream: received, lost, in another order."""

    def __init__(self, first: int) -> None:
        self._first = first
        self._next = first
        self._missing: dict[int, None] = {}  # in order of number
        self.lost = 0  # those that may still arrive too
        self.reordered = 0

    @property
    def sent(self) -> int:
        """Datagrams that the sender sent since the first that arrived."""
        return self._next - self._first

    def add(self, number: int) -> bool:
        """Count a datagram; return False for one that arrived before, or is too far ahead."""
        if number in self._missing:
            del self._missing[number]
            self.lost -= 1
            self.reordered += 1
            return True
        if self._first - _MAX_MISSING <= number < self._first:
            return True  # sent before the first that arrived, so it is neither lost nor counted
        gap = number - self._next
        if not 0 <= gap <= _MAX_LEAP:
            return False
        self.lost += gap
        for missing in range(max(self._next, number - _MAX_MISSING), number):
            self._missing[missing] = None
        while len(self._missing) > _MAX_MISSING:
            del self._missing[next(iter(self._missing))]
        self._next = number + 1
        return True


class _OpenFrame(Struct):
    parts: int
    data: dict[int, bytes]
    size: int = 0


class Reassembly:
    """Makes frames of datagrams, in bounded memory. The oldest unfinished frame goes first."""

    def __init__(self, max_bytes: int = MAX_FRAME) -> None:
        self._max_bytes = max_bytes
        self._open: dict[int, _OpenFrame] = {}
        self._done = -1
        self.size = 0  # bytes of unfinished frames

    def add(self, header: DatagramHeader, data: bytes) -> bytes | None:
        """Add one part; return the frame if that was the last one missing."""
        if header.frame <= self._done:
            return None
        found = self._open.setdefault(header.frame, _OpenFrame(header.parts, {}))
        if header.parts != found.parts or header.part in found.data:
            return None
        found.data[header.part] = data
        found.size += len(data)
        self.size += len(data)
        if len(found.data) == found.parts:
            self._forget(header.frame)
            self._done = header.frame
            for older in [number for number in self._open if number < header.frame]:
                self._forget(older)
            return b"".join(part for _, part in sorted(found.data.items()))
        while len(self._open) > _MAX_OPEN or (self._open and self.size > self._max_bytes):
            self._forget(min(self._open))
        return None

    def _forget(self, frame: int) -> None:
        self.size -= self._open.pop(frame).size
