"""Streams of a stranger: datagrams with right checksums and strange numbers, parts and frames."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from fuzz import hostile_recordings
from locktop.collector.model import Snapshot
from locktop.collector.recording.frame_format import FILE_HEADER, HEADER_SIZE
from locktop.collector.stream import datagrams
from locktop.collector.stream.datagram_receiver import DatagramReceiver
from locktop.collector.stream.received_stream import ReceivedStream
from locktop.collector.stream.stream_frames import MAX_FRAME

#: As docs/internals/stream.md describes the header of a datagram, without its checksum.
_HEAD = struct.Struct("<4sBBHQQIHH")
_SIZE = 1200
_HOSTS = ("10.0.0.1", "10.0.0.2")


def examine(data: bytes) -> list[Snapshot]:
    """Give the datagrams of an input to a receiver, and return the published snapshots.

    Raises:
        AssertionError: the receiver keeps more bytes than three streams may have.
    """
    found: list[Snapshot] = []
    receiver = DatagramReceiver(ReceivedStream(found.append))
    for number, (host, datagram) in enumerate(_datagrams(data)):
        receiver.take(datagram, host, number / 10)
        receiver.check_silence(number / 10)
        assert receiver.size <= 3 * MAX_FRAME
        assert receiver.losses.isprintable()
    assert all(note.isprintable() for snapshot in found for note in snapshot.notes)
    return found


def _datagrams(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield hosts and datagrams. The first byte of an input is its kind."""
    kind, rest = data[:1], data[1:]
    if kind == b"D":
        yield from _parts(rest)
        return
    number = 0
    frames = _frames(hostile_recordings.from_input(data))
    for frame_number, frame in enumerate(frames):
        for datagram in datagrams.split(frame, 7, frame_number, number, _SIZE):
            number += 1
            yield _HOSTS[0], datagram


def _parts(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield datagrams of any parts: stream, number, frame, part, parts, size of the content."""
    at = 0
    while at + 10 <= len(data):
        stream, number, frame, part, parts, size = struct.unpack_from("<BHHHHB", data, at)
        content = data[at + 10 : at + 10 + size] or b"\0"
        head = _HEAD.pack(
            datagrams.MAGIC, datagrams.VERSION, 0, 0, stream >> 1, number, frame, part, parts
        )
        checksum = zlib.crc32(content, zlib.crc32(head))
        yield _HOSTS[stream & 1], head + checksum.to_bytes(4, "little") + content
        at += 10 + size


def _frames(recording: bytes) -> Iterator[bytes]:
    """Yield the frames of a recording; bytes without a frame's header are one frame."""
    at = FILE_HEADER.size
    while at < len(recording):
        head = recording[at : at + HEADER_SIZE]
        stored = struct.unpack_from("<I", head, 8)[0] if len(head) == HEADER_SIZE else 0
        end = min(at + HEADER_SIZE + stored, len(recording))
        yield recording[at:end]
        at = end
