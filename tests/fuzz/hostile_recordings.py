"""Recordings of a stranger: built from sound parts with damage, and used as the commands use them.

The checksums are always right, so that the damage reaches what lies behind them.
"""

from __future__ import annotations

import functools
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import zstandard
from msgspec.structs import replace
from unit.builders import records, scenarios

from fuzz.mutate import damaged
from locktop.collector.errors import LocktopError
from locktop.collector.extensions.diff.compare import compare
from locktop.collector.extensions.diff.formats import DIFF_FORMATS
from locktop.collector.extensions.diff.model import Side
from locktop.collector.extensions.diff.sides import side_of_recording, side_of_snapshot
from locktop.collector.extensions.report import page
from locktop.collector.extensions.report.past_incident import MAX_RECORDS, past_incident
from locktop.collector.model import NotableKind, Snapshot
from locktop.collector.recording import chosen_moment, frame_format, snapshot_payload
from locktop.collector.recording.frame_format import FILE_HEADER, MAGIC, VERSION, FrameType
from locktop.collector.recording.recording import Recording
from locktop.collector.recording.recording_info import RecordingInfo
from locktop.collector.recording.time_lines import TimeLineReader
from locktop.collector.render.formats import CALL_TREE_FORMATS, FINDING_FORMATS, SNAPSHOT_FORMATS
from locktop.collector.render.profiles.profile import SnapshotProfile
from locktop.collector.render.text import timeline
from locktop.collector.render.words import verdict

_NS = 1_000_000_000
BEGIN_NS = 1_790_000_000 * _NS
_EDGES: tuple[Any, ...] = (
    0, 1, -1, 2, 7, 255, 4711, 4712, (1 << 31) - 1, 1 << 32, (1 << 62), (1 << 63) - 1, -(1 << 63),
    (1 << 64) - 1, 0.0, -1.0, 1e-9, 1e17, -1e17, 1e300, float("nan"), float("inf"),
    "", "x", "\x1b[2J", "a\nb", "\u202e", "é" * 300, "wide 宽", "[red]x[/]", "mutex", "proc",
    "2026-11-21T03:12:45.678Z", None, True, [], {}, b"\x00",
)  # fmt: skip
_MAKERS: tuple[Callable[[], Snapshot], ...] = (
    scenarios.normal,
    scenarios.deadlock,
    scenarios.orders,
    scenarios.fleet,
    scenarios.ended,
)


@functools.cache
def payload_of(make: Callable[[], Snapshot]) -> bytes:
    """Return a sound payload."""
    return snapshot_payload.encode(records.classified(make)())


def frame(
    type_: int, payload: bytes, time_ns: int = BEGIN_NS, unpacked: int | None = None
) -> bytes:
    """Return a frame of any type with any payload as stored."""
    whole = len(payload) if unpacked is None else unpacked
    return frame_format.pack(type_, payload, whole, time_ns)  # type: ignore[arg-type]


def packed(type_: FrameType, payload: bytes, time_ns: int = BEGIN_NS) -> bytes:
    """Return a frame with a payload that is to be packed."""
    return frame(type_, zstandard.compress(payload), time_ns, len(payload))


def header() -> bytes:
    """Return the header of a file and the frame of the process."""
    info = msgpack.packb(
        {"locktop": "1", "host": "h", "pid": 4711, "comm": "store", "source": "preload",
         "began_at": "2026-11-21T03:12:45.678Z"}
    )  # fmt: skip
    return FILE_HEADER.pack(MAGIC, VERSION, 0) + frame(FrameType.INFO, bytes(info))


def recording_of(*payloads: bytes) -> bytes:
    """Return a recording with these snapshots, one a second."""
    frames = [
        packed(FrameType.KEY, payload, BEGIN_NS + number * _NS)
        for number, payload in enumerate(payloads)
    ]
    return header() + b"".join(frames)


# ---- damage ----


def hostile(seed: int) -> bytes:
    """Return the recording of a seed."""
    chance = random.Random(seed)
    payload = payload_of(chance.choice(_MAKERS))
    kind = chance.randrange(8)
    if kind < 5:  # damage to the meaning
        tree = msgpack.unpackb(payload, strict_map_key=False)
        for _ in range(chance.choice((1, 1, 2, 5, 20))):
            _change(tree, chance)
        return recording_of(payload, msgpacked(tree))
    if kind < 6:  # damage to the bytes of the payload
        return recording_of(payload, damaged(payload, seed))
    if chance.random() < 0.4:  # strange records between sound snapshots
        return recording_of(payload, payload, payload) + _records(chance)
    parts = [packed(FrameType.KEY, payload), *_others(chance)]
    chance.shuffle(parts)
    if kind < 7:  # damage to the order of the frames
        return header() + b"".join(parts)
    return damaged(header() + b"".join(parts), seed)


def hostile_records(seed: int) -> bytes:
    """Return a recording with sound snapshots, strange records and every other frame."""
    chance = random.Random(seed)
    payload = payload_of(chance.choice(_MAKERS))
    parts = [_records(chance), *_others(chance)[:3]]
    return recording_of(payload, payload, payload) + b"".join(parts)


def _others(chance: random.Random) -> list[bytes]:
    """Return frames of all other types with strange contents."""
    moments = [
        {"time_ns": chance.choice(_EDGES), "kind": chance.choice([*NotableKind, "x"]),
         "text": chance.choice(_EDGES), "tid": chance.choice(_EDGES)}
        for _ in range(3)
    ]  # fmt: skip
    sound = [{"time_ns": BEGIN_NS, "kind": "mark", "text": "\x1b" * 100_000}]
    slots, count = chance.randbytes(64 * chance.randrange(4)), chance.choice((0, 1, 1 << 40, -1))
    hz = chance.choice((1e9, 1.0, 1e12, 0, "x"))
    batch = [chance.choice(_EDGES), BEGIN_NS, hz, 0, slots, chance.choice((0, 1, -1)), count]
    return [
        frame(FrameType.NOTABLES, msgpacked(moments)),
        frame(FrameType.NOTABLES, msgpacked(sound)),
        packed(FrameType.SLOTS, msgpacked(batch)),
        frame(FrameType.INDEX, msgpacked([chance.randrange(1 << 40), [[0, 2, 0, 0, 0]]])),
        frame(FrameType.END, msgpacked(chance.choice(_EDGES))),
        frame(chance.randrange(8, 256), chance.randbytes(40)),
        frame(FrameType.CHANGE, chance.randbytes(40), BEGIN_NS, chance.randrange(1 << 26)),
    ]


def _records(chance: random.Random) -> bytes:
    """Return a frame with sound slots of strange or plausible numbers."""
    now = 10_000_000_000  # ticks

    def ticks() -> int:
        edge = chance.choice((0, 1, now, 1 << 40, (1 << 63) - 1, (1 << 64) - 1))
        return chance.choice((edge, chance.randrange(2 * now)))

    slots = b"".join(
        struct.pack(
            ">BBBBIBIBIBIBQBQBQBQ5s",
            *(0x9B, chance.randrange(1, 4), chance.randrange(12)),
            *(0xCE, chance.choice((4711, 4712, 4713, 0, (1 << 32) - 1))),
            *(0xCE, chance.choice((1, 2, 3, 0, (1 << 32) - 1))),
            *(0xCE, chance.choice((1, 2, 0, 77))),
            *(0xCE, chance.choice((4714, 0, 9))),
            *(0xCF, now - chance.randrange(3 * 10**9) if chance.random() < 0.7 else ticks()),
            *(0xCF, chance.randrange(10**9) if chance.random() < 0.7 else ticks()),
            *(0xCF, chance.randrange(10**9) if chance.random() < 0.7 else ticks()),
            *(0xCF, chance.choice((0x401100, 0, (1 << 64) - 1))),
            b"\xc4\x03\0\0\0",
        )
        for _ in range(chance.choice((1, 3, 50)))
    )
    hz = chance.choice((1e9, 1e9, 1e9, 1.0, 1e12))
    return packed(FrameType.SLOTS, msgpacked([now, BEGIN_NS + 2 * _NS, hz, 0, slots]), BEGIN_NS)


def msgpacked(value: object) -> bytes:
    """Return a value as msgpack; nil for a value that has no msgpack."""
    try:
        return bytes(msgpack.packb(value))
    except (OverflowError, ValueError):
        return b"\xc0"


def _change(tree: Any, chance: random.Random) -> None:
    """Change one value somewhere below ``tree``."""
    above, key = tree, 0
    value = tree[0]
    while True:
        inner = (
            list(value.items()) if isinstance(value, dict)
            else list(enumerate(value)) if isinstance(value, list)
            else []
        )  # fmt: skip
        if not inner or (above is not tree and chance.random() < 0.15):
            break
        above = value
        key, value = chance.choice(inner)
    kind = chance.randrange(10)
    if kind < 6:
        above[key] = _value_for(value, chance)
    elif kind < 8:
        if isinstance(above, dict) or len(above) > 1:
            del above[key]
    elif isinstance(above, list):
        above.insert(key, value)
    else:
        above[chance.choice(_EDGES[:22])] = value


def _value_for(value: object, chance: random.Random) -> object:
    """Return another value, mostly of the same type: it gets further."""
    if chance.random() < 0.8:
        alike = [
            edge for edge in _EDGES
            if type(edge) is type(value) or (isinstance(value, float) and isinstance(edge, int))
        ]  # fmt: skip
        if isinstance(value, int) and value < 1 << 62 and chance.random() < 0.5:
            return value + chance.choice((-1, 1))
        if alike:
            return chance.choice(alike)
    return chance.choice(_EDGES)


# ---- many parts in few bytes ----

#: Parts that take one to nine bytes as they come, and far more as objects.
_TINY: tuple[Any, ...] = (
    [],
    {},
    [0, 0],
    [[]],
    ["ab"],
    "ab",
    300,
    {"tid": 5},
    [[0, 0], b"", 1, 0, 0],
)
_MANY = 400_000


def crowded(seed: int) -> bytes:
    """Return a small recording with a list or a map of very many tiny parts.

    Half of the lists are of a type that the snapshot allows there.
    """
    chance = random.Random(seed)
    tree = msgpack.unpackb(payload_of(chance.choice(_MAKERS)), strict_map_key=False)
    kind = chance.randrange(4)
    if kind == 0:
        _grow(tree, chance)
    elif kind == 1:
        tree[1][chance.choice((1, 2, 77))] = crowded_blame(_MANY)
    elif kind == 2:
        field = chance.choice(("recent_lock_waits", "recent_thread_waits", "why", "sites"))
        value = "" if field == "why" else []
        tree[0][field] = dict.fromkeys(range(_MANY), value)
    else:
        field, part = chance.choice(
            (("notes", "ab"), ("unobserved_waits", {"tid": 5}), ("unobserved_waiters", 300))
        )
        tree[0][field] = [part] * _MANY
    return recording_of(msgpacked(tree))


def crowded_blame(count: int) -> list[Any]:
    """Return a PackedBlame of one row, with so many origins."""
    return [[[0, 0]] * count, bytes(24), 1e9, 0.0, 0.0]


def _grow(tree: Any, chance: random.Random) -> None:
    """Make some list of the tree very long."""
    lists, open_ = [], [tree]
    while open_:
        value = open_.pop()
        if isinstance(value, list) and value is not tree:
            lists.append(value)
        if isinstance(value, (list, dict)):
            open_ += value.values() if isinstance(value, dict) else value
    grown = chance.choice(lists)
    grown += [chance.choice([*_TINY, *grown[:1]])] * _MANY


# ---- use ----


def examine(path: Path) -> int:
    """Use a recording as the commands do, and return how many snapshots could be used.

    Raises:
        AssertionError: an error has more than one line.
        Exception: any other error is a defect.
    """
    try:
        recording = Recording(path)
    except LocktopError as error:
        _check_line(error)
        return 0
    used = 0
    try:
        assert "\n" not in recording.damage
        for time_ns in list(recording.times_ns())[:4]:
            try:
                use(recording.snapshot_at(time_ns))
            except LocktopError as error:
                _check_line(error)
                continue
            used += 1
        for moment in recording.notables():
            assert moment.text.isprintable()
        for query in (
            lambda: recording.records(0, 1 << 62),
            lambda: _use_time_line(recording),
            lambda: _use_report(recording),
            lambda: chosen_moment.snapshot_at(recording, "alert"),
            lambda: use(chosen_moment.span_between(recording, None, None).figures()),
            lambda: _use_difference(side_of_recording(recording, None, None, "r")),
        ):
            try:
                query()
            except LocktopError as error:
                _check_line(error)
    finally:
        recording.close()
    return used


def use(snapshot: Snapshot) -> None:
    """Write all that the commands write of a snapshot."""
    for form in SNAPSHOT_FORMATS.names:
        SNAPSHOT_FORMATS.render(form, snapshot, snapshot, idle=True)
    for form in FINDING_FORMATS.names:
        FINDING_FORMATS.render(form, snapshot, potential=True)
    verdict.is_doubtful(snapshot)
    profile = SnapshotProfile(snapshot)
    for weight in profile.weights:
        CALL_TREE_FORMATS.render("text", profile, weight, True, None)
    RecordingInfo.from_snapshot(snapshot, "1")
    if snapshot.duration_s > 0:
        _use_difference(side_of_snapshot(snapshot, "s"))


def _use_difference(side: Side) -> None:
    other = replace(side, locks={}, pieces=side.pieces[:1])
    for before, after in ((side, side), (side, other), (other, side)):
        for form in DIFF_FORMATS.names:
            DIFF_FORMATS.render(form, compare(before, after))


def _use_time_line(recording: Recording) -> None:
    reader = TimeLineReader(recording)
    first_ns, last_ns = reader.bounds()
    for from_ns, to_ns in ((first_ns, last_ns), (first_ns, first_ns + 1), (0, 1 << 62)):
        timeline.render(reader.read(from_ns, to_ns))


def _use_report(recording: Recording) -> None:
    span = chosen_moment.Span(chosen_moment.snapshot_at(recording, None))
    _, to_ns = chosen_moment.span_ns(recording, None, None)
    for max_records in (MAX_RECORDS, 1):
        page.render(past_incident(recording, span, None, to_ns, max_records))


def _check_line(error: LocktopError) -> None:
    assert "\n" not in str(error), str(error)
    assert len(str(error)) < 2000, str(error)


# ---- what a coverage-guided fuzzer makes ----


def from_input(data: bytes) -> bytes:
    """Return the recording that an input of the fuzzer stands for. The first byte is its kind."""
    kind, rest = data[:1], data[1:]
    if kind == b"F":  # a file
        return rest
    if kind == b"K":  # the payload of a snapshot
        return recording_of(rest)
    if kind == b"S":  # a seed
        return hostile(int.from_bytes(rest[:8], "little"))
    if kind == b"R":
        return header() + packed(FrameType.SLOTS, rest)
    if kind == b"I":
        return header()[: FILE_HEADER.size] + frame(FrameType.INFO, rest)
    found, at = [header()], 1
    while at + 4 <= len(data):  # frames: type, number of packings, size of the payload
        type_, times, size = data[at], data[at + 1] % 3, data[at + 2] | data[at + 3] << 8
        payload = whole = data[at + 4 : at + 4 + size]
        for _ in range(times):
            payload = zstandard.compress(payload)
        found.append(frame(type_, payload, BEGIN_NS + at, len(whole)))
        at += 4 + size
    return b"".join(found)
