"""The datagrams of a stream over UDP, and the frames made of them.

docs/internals/stream.md describes the layout. All numbers are little-endian.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator

from msgspec import Struct

from locktop.collector.extensions.stream.stream_frames import MAX_FRAME

#: Bytes of a datagram with its header. IPv6 carries 1,280 bytes everywhere, with all headers.
DEFAULT_SIZE = 1200
SMALLEST, LARGEST = 200, 60_000
MAGIC = b"LTDG"
VERSION = 1
#: magic, version, channel, 0, stream, datagram number, frame number, part, parts, CRC-32.
_HEADER = struct.Struct("<4sBBHQQIHHI")
_CRC_AT = _HEADER.size - 4
#: So many parts have one parity part, from which one lost part of them can be made again.
GROUP = 8
#: With the parity parts, the numbers of the parts stay below 65,536.
_MAX_PARTS = 58_000
#: Frames under construction at one time.
_MAX_OPEN = 4
#: Missing numbers that may still arrive; a number this far ahead is forged.
_MAX_MISSING = 4096
_MAX_LEAP = 1 << 20
#: So many datagrams or frames in a row seem to be old, each newer than the one before. Then a
#: forged number was far ahead, and the stream goes on with the last of these.
_FORGED_DATAGRAMS, _FORGED_FRAMES = 16, 4

#: Each channel numbers its own frames. So a lost batch of ring records costs no snapshot.
SNAPSHOTS, RECORDS = 0, 1


class DatagramHeader(Struct, frozen=True, gc=False):
    """The header of one datagram."""

    stream: int  # random, of one run of the sender
    number: int  # of the datagram in its stream, from 0 on
    frame: int  # number of the frame in its stream, from 0 on
    part: int  # of the frame, from 0 on; the parity parts follow
    parts: int  # without the parity parts
    channel: int = SNAPSHOTS


def split(
    frame: bytes, stream: int, frame_number: int, first: int, size: int, channel: int = SNAPSHOTS
) -> Iterator[bytes]:
    """Yield the datagrams of a frame.

    Args:
        frame: a whole frame.
        stream: the id of the stream.
        frame_number: of this frame in its channel.
        first: the number of the first datagram.
        size: bytes of a datagram at most.
        channel: SNAPSHOTS or RECORDS.
    """
    room = size - _HEADER.size
    data_parts = [frame[start : start + room] for start in range(0, len(frame), room)]
    parts = len(data_parts)
    groups = groups_of(parts)
    parities = [
        _parity(data_parts[part % groups :: groups], room) for part in range(parts, parts + groups)
    ]
    for part, data in enumerate((*data_parts, *parities)):
        head = _HEADER.pack(
            MAGIC, VERSION, channel, 0, stream, first + part, frame_number, part, parts, 0
        )[:_CRC_AT]
        checksum = zlib.crc32(data, zlib.crc32(head))
        yield b"".join((head, checksum.to_bytes(4, "little"), data))


def groups_of(parts: int) -> int:
    """Return how many groups a frame of so many parts has.

    Part ``i`` is in group ``i % groups``, the parity parts too. So a burst of losses meets
    different groups.
    """
    return -(-parts // GROUP)


def _parity(parts: Iterable[bytes], room: int) -> bytes:
    """Return the exclusive or of all parts, which count as filled up with zeros."""
    parity = 0
    for part in parts:
        parity ^= int.from_bytes(part.ljust(room, b"\0"), "little")
    return parity.to_bytes(room, "little")


def parse(datagram: bytes) -> tuple[DatagramHeader, bytes] | None:
    """Return the header and the part of the frame; None for a damaged or foreign datagram."""
    if len(datagram) <= _HEADER.size:
        return None
    magic, version, channel, more, stream, number, frame, part, parts, checksum = (
        _HEADER.unpack_from(datagram)
    )
    if magic != MAGIC or version != VERSION or channel > RECORDS or more:
        return None
    if not 0 < parts <= _MAX_PARTS or part >= parts + groups_of(parts):
        return None
    data = datagram[_HEADER.size :]
    if zlib.crc32(data, zlib.crc32(datagram[:_CRC_AT])) != checksum:
        return None
    return (
        DatagramHeader(
            stream=stream, number=number, frame=frame, part=part, parts=parts, channel=channel
        ),
        data,
    )


def max_frame(size: int) -> int:
    """Return how many bytes a frame has at most in datagrams of ``size`` bytes."""
    return min(MAX_FRAME, _MAX_PARTS * (size - _HEADER.size))


class _OldRun:
    """Counts numbers in a row that seem to be old, each above the one before."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._count, self._last = 0, -1

    def clear(self) -> None:
        """Begin anew: a number was as expected."""
        self._count, self._last = 0, -1

    def is_forged(self, number: int) -> bool:
        """Count an old number; return whether the newer number before was a forged one."""
        if number > self._last:
            self._count += 1
        elif number < self._last:
            self._count = 1
        self._last = number
        return self._count >= self._limit


class DatagramCounts:
    """Counts the datagrams of one stream: received, lost, in another order."""

    def __init__(self, first: int) -> None:
        self._old = _OldRun(_FORGED_DATAGRAMS)
        self.lost = self.reordered = 0
        self._begin(first)

    def _begin(self, first: int) -> None:
        self._first = self._next = first
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
        if gap < 0 and self._old.is_forged(number):
            self._begin(number)
            gap = 0
        if not 0 <= gap <= _MAX_LEAP:
            return False
        self._old.clear()
        self.lost += gap
        for missing in range(max(self._next, number - _MAX_MISSING), number):
            self._missing[missing] = None
        while len(self._missing) > _MAX_MISSING:
            del self._missing[next(iter(self._missing))]
        self._next = number + 1
        return True


class _OpenFrame:
    """The parts of one frame that have arrived."""

    def __init__(self, parts: int) -> None:
        self.parts = parts
        self.size = 0  # bytes
        self._data: dict[int, bytes] = {}
        #: Parts of each group that have arrived. A header may promise thousands of groups, so a
        #: group takes memory when its first part arrives.
        self._arrived: dict[int, int] = {}
        self._groups = self._groups_open = groups_of(parts)

    def add(self, part: int, data: bytes) -> bool:
        """Add a part; return False for one that is there already."""
        if part in self._data:
            return False
        self._data[part] = data
        self.size += len(data)
        group = part % self._groups
        arrived = self._arrived[group] = self._arrived.get(group, 0) + 1
        self._groups_open -= arrived == len(range(group, self.parts, self._groups))
        return True

    @property
    def is_whole(self) -> bool:
        """Whether the frame can be made."""
        return self._groups_open == 0

    def frame(self) -> bytes:
        """Return the frame, maybe with zeros behind it. Each group misses one part at most."""
        groups = self._groups
        for group in range(groups):
            members = range(group, self.parts + groups, groups)
            missing = [part for part in members if part not in self._data]
            if missing and missing[0] < self.parts:
                others = [self._data[part] for part in members if part != missing[0]]
                # The parity part of the group is as long as the missing one. Parts of other
                # groups may be longer only if they are forged, and would take memory.
                self._data[missing[0]] = _parity(others, max(map(len, others)))
        return b"".join(self._data[part] for part in range(self.parts))


class Reassembly:
    """Makes frames of datagrams, in bounded memory. The oldest unfinished frame goes first."""

    def __init__(self, max_bytes: int = MAX_FRAME) -> None:
        self._max_bytes = max_bytes
        self._open: dict[int, _OpenFrame] = {}
        self._done = -1
        self._old = _OldRun(_FORGED_FRAMES)
        self.size = 0  # bytes of unfinished frames

    def add(self, header: DatagramHeader, data: bytes) -> bytes | None:
        """Add one part; return the frame if it can be made now, maybe with zeros behind it."""
        if header.frame <= self._done:
            # The parts of the newest frame that come when the frame is whole already are no sign.
            if header.frame == self._done or not self._old.is_forged(header.frame):
                return None
            self._done = header.frame - 1
            for number in list(self._open):
                self._forget(number)
        open_frame = self._open.get(header.frame)
        if open_frame is None:
            open_frame = self._open[header.frame] = _OpenFrame(header.parts)
        if header.parts != open_frame.parts or not open_frame.add(header.part, data):
            return None
        self.size += len(data)
        if open_frame.is_whole:
            self._done = header.frame
            self._old.clear()
            for number in [number for number in self._open if number <= header.frame]:
                self._forget(number)
            return open_frame.frame()
        while len(self._open) > _MAX_OPEN or (self._open and self.size > self._max_bytes):
            # In the order of arrival: a forged number far ahead must not stay for ever.
            self._forget(next(iter(self._open)))
        return None

    def _forget(self, frame: int) -> None:
        self.size -= self._open.pop(frame).size
