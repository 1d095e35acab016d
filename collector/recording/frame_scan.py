"""Finds the frames of a recording by their headers, from the begin to the first damaged one."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from locktop.collector.errors import LocktopError
from locktop.collector.recording import frame_format
from locktop.collector.recording.frame_format import FILE_HEADER, HEADER_SIZE, FrameType
from locktop.collector.recording.frame_index import TRAILER, IndexEntry

#: Frames that count. A recorder with four frames a second writes so many in three days.
MAX_FRAMES = 1 << 20
#: Bytes that are read at once.
_CHUNK = 1 << 20
_KNOWN = frozenset(FrameType)


class Scanned(Struct, frozen=True):
    """The frames of a file."""

    frames: list[IndexEntry]  # of known types
    damage: str  # why the rest is left out; "" if there is no rest


def scan(read: Callable[[int, int], bytes], size: int, checks: bool) -> Scanned:
    """Return the frames of a file.

    Args:
        read: returns so many bytes of the file at an offset, fewer at its end.
        size: its size, bytes.
        checks: whether to read the payloads too, for their checksums.
    """
    frames: list[IndexEntry] = []
    begin, chunk = 0, b""  # the bytes that were read last, and where they lie
    offset = FILE_HEADER.size
    while offset + HEADER_SIZE <= size:
        if len(frames) >= MAX_FRAMES:
            return Scanned(frames, f"more than {MAX_FRAMES} frames: the rest is left out")
        if not begin <= offset <= begin + len(chunk) - HEADER_SIZE:
            begin, chunk = offset, read(_CHUNK, offset)
        head = chunk[offset - begin : offset - begin + HEADER_SIZE]
        try:
            if len(head) < HEADER_SIZE:
                raise LocktopError("it became shorter while it was read")
            header = frame_format.parse_header(head)
            end = offset + HEADER_SIZE + header.stored
            if end > size:
                break
            if checks:
                payload = chunk[offset - begin + HEADER_SIZE : end - begin]
                if len(payload) != header.stored:
                    payload = read(header.stored, offset + HEADER_SIZE)
                frame_format.check(header, head, payload)
        except LocktopError:
            return Scanned(frames, f"damaged at byte {offset}: what follows is left out")
        if header.type in _KNOWN:
            frames.append(
                IndexEntry(offset, header.type, header.stored, header.unpacked, header.time_ns)
            )
        offset = end
    cut = size - offset != TRAILER.size
    return Scanned(frames, f"it was cut off at byte {offset}, or still goes on" if cut else "")
