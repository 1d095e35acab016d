"""Streams of a stranger: datagrams with right checksums and strange numbers, parts and frames."""

from __future__ import annotations

import contextlib
import struct
import zlib
from collections.abc import Iterator

from msgspec import Struct
from unit.builders import scenarios

from fuzz import hostile_recordings
from locktop.collector.errors import LocktopError
from locktop.collector.extensions.stream import datagrams
from locktop.collector.extensions.stream.datagram_receiver import DatagramReceiver
from locktop.collector.extensions.stream.received_stream import ReceivedScan, ReceivedStream
from locktop.collector.extensions.stream.stream_frames import MAX_FRAME, has_records
from locktop.collector.extensions.stream.stream_intake import MAX_HELD_BYTES
from locktop.collector.model import Snapshot, WaitRecord
from locktop.collector.recording.frame_format import FILE_HEADER, HEADER_SIZE, FrameType
from locktop.collector.recording.history import History
from locktop.collector.recording.memory_keeper import MemoryKeeper
from locktop.collector.recording.time_lines import TimeLineReader

#: As docs/internals/stream.md describes the header of a datagram, without its checksum.
_HEAD = struct.Struct("<4sBBHQQIHH")
_SIZE = 1200
_HOSTS = ("10.0.0.1", "10.0.0.2")
#: Unfinished frames of both channels, and ring records that wait: those of one stream.
_MAX_BYTES = MAX_FRAME + (4 << 20) + MAX_HELD_BYTES
_ALWAYS = (0, 1 << 62)
#: A batch of an input of kind Q has these: clock, seconds, rate, lost, before, records, bytes.
_BATCH = struct.Struct("<QHBHIHH")
_RATES = (1e9, 1.0, 1e12, 0.0, float("nan"), 1e300)


class Examined(Struct):
    """The snapshots and records that a receiver made of an input."""

    snapshots: list[Snapshot]
    records: list[WaitRecord]


class _Memory:
    """Keeps all that arrives as the screen does, but hides no fault."""

    def __init__(self) -> None:
        self.history = History()
        self._keeper = MemoryKeeper(None, self.history)

    def keep_received(self, scan: ReceivedScan) -> None:
        for batch in scan.records:
            self._keeper.add_slots(batch)
        if scan.time_ns is not None:
            self._keeper.keep(scan.snapshot, taken_ns=scan.time_ns)


def examine(data: bytes) -> Examined:
    """Give the datagrams of an input to a receiver, and return what that publishes and keeps.

    Raises:
        AssertionError: the receiver keeps more bytes than three streams may have.
    """
    found: list[Snapshot] = []
    memory = _Memory()
    receiver = DatagramReceiver(ReceivedStream(found.append, memory=memory))
    for number, (host, datagram) in enumerate(_datagrams(data)):
        receiver.take(datagram, host, number / 10)
        receiver.check_silence(number / 10)
        assert receiver.size <= 3 * _MAX_BYTES
        assert receiver.losses.isprintable()
    assert all(note.isprintable() for snapshot in found for note in snapshot.notes)
    with contextlib.suppress(LocktopError):
        TimeLineReader(memory.history).read(*_ALWAYS)
    return Examined(snapshots=found, records=list(memory.history.records(*_ALWAYS)))


def _datagrams(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield hosts and datagrams. The first byte of an input is its kind."""
    kind, rest = data[:1], data[1:]
    if kind == b"D":
        yield from _parts(rest)
        return
    number, frame_numbers = 0, [0, 0]
    recording = _with_batches(rest) if kind == b"Q" else hostile_recordings.from_input(data)
    for frame in _frames(recording):
        channel = _channel(frame)
        parts = datagrams.split(frame, 7, frame_numbers[channel], number, _SIZE, channel)
        frame_numbers[channel] += 1
        for datagram in parts:
            number += 1
            yield _HOSTS[0], datagram


def _channel(frame: bytes) -> int:
    try:
        return datagrams.RECORDS if has_records(frame) else datagrams.SNAPSHOTS
    except LocktopError:
        return datagrams.SNAPSHOTS


def _with_batches(data: bytes) -> bytes:
    """Return a recording of sound snapshots, with a batch of strange ring records before each."""
    sound = hostile_recordings.payload_of(scenarios.normal)
    found, at = [hostile_recordings.recording_of(sound)], 0
    while at + _BATCH.size <= len(data):
        ticks, second, rate, lost, before, count, size = _BATCH.unpack_from(data, at)
        records = data[at + _BATCH.size : at + _BATCH.size + size]
        begin_ns = hostile_recordings.BEGIN_NS
        hz, time_ns = _RATES[rate % len(_RATES)], begin_ns + second * 10**8
        batch = [ticks, time_ns, hz, lost, records, count, ticks >> 1, before]
        payload = hostile_recordings.msgpacked(batch)
        found.append(hostile_recordings.packed(FrameType.SLOTS, payload, time_ns))
        found.append(hostile_recordings.packed(FrameType.KEY, sound, time_ns + 1))
        at += _BATCH.size + size
    return b"".join(found)


def _parts(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield datagrams of any parts: stream, number, frame, part, parts, size of the content."""
    at = 0
    while at + 10 <= len(data):
        stream, number, frame, part, parts, size = struct.unpack_from("<BHHHHB", data, at)
        content = data[at + 10 : at + 10 + size] or b"\0"
        first = 2 * frame + number  # each frame has at least two datagrams
        channel, version = stream >> 1 & 1, datagrams.VERSION
        head = _HEAD.pack(
            datagrams.MAGIC, version, channel, 0, stream >> 2, first, frame, part, parts
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
