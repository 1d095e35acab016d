"""A second reader of recordings, from docs/internals/recording.md alone: nothing of locktop."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgpack
import zstandard

INFO, KEY, CHANGE, SLOTS, NOTABLES, INDEX, END = range(1, 8)
_HEADER = struct.Struct("<4sBBHIIqI")
_ROW = struct.Struct("<IIIIQ")


@dataclass
class Frame:
    """One frame, its payload as stored."""

    offset: int
    type: int
    unpacked: int
    time_ns: int
    payload: bytes


@dataclass
class RingRecord:
    """One record of the ring."""

    type: int
    kind: int
    tid: int
    lock: int
    stack: int
    holder: int
    start: int  # ticks, as are the next two
    wait: int
    hold: int
    site: int
    began_ns: int = 0
    wait_ns: int = 0


@dataclass
class Contents:
    """All that a recording has."""

    info: dict[str, Any]
    snapshots: list[tuple[int, dict[str, Any]]] = field(default_factory=list)  # time, snapshot
    #: for each snapshot: by lock the rows (tid, site, further lock, seconds)
    blame: list[dict[int, list[tuple[int, int, int, float]]]] = field(default_factory=list)
    records: list[RingRecord] = field(default_factory=list)
    notables: list[dict[str, Any]] = field(default_factory=list)
    reason: str = ""
    is_indexed: bool = False


def read(path: Path) -> Contents:
    """Return the contents of a recording."""
    data = path.read_bytes()
    magic, version, zero = struct.unpack_from("<8sHH", data)
    if magic != b"LOCKTOP\n" or zero or version != 1:
        raise ValueError(f"version {version}")
    frames = list(_frames(data))
    contents = Contents(info=_unpacked(frames[0].payload))
    before = b""
    for frame in frames:
        if frame.type in (KEY, CHANGE):
            before = _zstd(frame, before if frame.type == CHANGE else None)
            snapshot, blame = msgpack.unpackb(before, strict_map_key=False)
            contents.snapshots.append((frame.time_ns, snapshot))
            contents.blame.append({lock: list(_rows(part)) for lock, part in blame.items()})
        elif frame.type == SLOTS:
            contents.records += _records(_unpacked(_zstd(frame, None)))
        elif frame.type == NOTABLES:
            contents.notables += _unpacked(frame.payload)
        elif frame.type == END:
            contents.reason = _unpacked(frame.payload)
    contents.is_indexed = _indexed(data) == [
        frame.offset for frame in frames if frame.type != INDEX
    ]
    return contents


def _frames(data: bytes) -> Iterator[Frame]:
    offset = 12
    while offset + _HEADER.size <= len(data):
        word, type_, _, zero, stored, unpacked, time_ns, checksum = _HEADER.unpack_from(
            data, offset
        )
        begin = offset + _HEADER.size
        payload = data[begin : begin + stored]
        if word != b"LTFR" or zero or len(payload) != stored:
            return
        if zlib.crc32(data[offset : begin - 4] + payload) != checksum:
            return
        yield Frame(offset, type_, unpacked, time_ns, payload)
        offset = begin + stored


def _zstd(frame: Frame, before: bytes | None) -> bytes:
    words = None
    if before is not None:
        words = zstandard.ZstdCompressionDict(before, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    packer = zstandard.ZstdDecompressor(dict_data=words, max_window_size=1 << 29)
    payload = packer.decompress(frame.payload)
    assert len(payload) == frame.unpacked
    return payload


def _unpacked(payload: bytes) -> Any:
    return msgpack.unpackb(payload, strict_map_key=False)


def _rows(part: list[Any]) -> Iterator[tuple[int, int, int, float]]:
    origins, rows, hz = part[:3]
    for _, origin, tid, _, ticks in _ROW.iter_unpack(rows):
        site, further = origins[origin]
        yield tid, site, further, ticks / hz


def _records(batch: list[Any]) -> Iterator[RingRecord]:
    ticks, time_ns, hz, _, raw = batch[:5]
    count = batch[5] if len(batch) > 5 else 0
    slots = _columns(raw, count) if count else _slots(raw)
    for record in slots:
        record.began_ns = time_ns - round((ticks - record.start) * 1e9 / hz)
        record.wait_ns = round(record.wait * 1e9 / hz)
        yield record


def _slots(raw: bytes) -> Iterator[RingRecord]:
    for offset in range(0, len(raw), 64):
        yield RingRecord(*msgpack.unpackb(raw[offset : offset + 64])[:10])


def _columns(raw: bytes, count: int) -> Iterator[RingRecord]:
    columns = [list(raw[:count]), list(raw[count : 2 * count])]
    offset = 2 * count
    # bits of a difference, or 0 for a plain number
    for bits in (32, 32, 32, 32, 64, 0, 0, 64):
        values, before = [], 0
        for _ in range(count):
            number, offset = _number(raw, offset)
            if bits:
                difference = number >> 1 if not number & 1 else -((number + 1) >> 1)
                number = before = (before + difference) % (1 << bits)
            values.append(number)
        columns.append(values)
    for row in zip(*columns, strict=True):
        yield RingRecord(*row)


def _number(raw: bytes, offset: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = raw[offset]
        number |= (byte & 0x7F) << shift
        offset, shift = offset + 1, shift + 7
        if byte < 0x80:
            return number, offset


def _indexed(data: bytes) -> list[int]:
    """Return the offsets of all frames that the index names."""
    offset, word = struct.unpack("<Q8s", data[-16:])
    if word != b"LTINDEX\n":
        return []
    offsets: list[int] = []
    while offset:
        stored = _HEADER.unpack_from(data, offset)[4]
        begin = offset + _HEADER.size
        before, entries = _unpacked(data[begin : begin + stored])
        offsets = [entry[0] for entry in entries] + offsets
        assert before < offset
        offset = before
    return offsets
