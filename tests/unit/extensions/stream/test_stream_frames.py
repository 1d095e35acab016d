"""Snapshots as frames: equal at the other end, and whatever a stranger sends is one error."""

from __future__ import annotations

import random
from contextlib import suppress
from itertools import pairwise

import pytest
from msgspec.structs import replace
from unit.builders import scenarios
from unit.recording.test_recording import scans

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.stream import stream_url
from locktop.collector.extensions.stream.destinations import destination_of
from locktop.collector.extensions.stream.stream_frames import (
    MAX_UNPACKED,
    FramePacker,
    FrameUnpacker,
    end_frame,
    parse_header,
)
from locktop.collector.recording import frame_format
from locktop.collector.recording.frame_format import HEADER_SIZE, FrameType


def taken(unpacker: FrameUnpacker, frame: bytes) -> object:
    return unpacker.content(frame[:HEADER_SIZE], frame[HEADER_SIZE:])


def type_of(frame: bytes) -> int:
    return parse_header(frame).type


def test_every_snapshot_comes_back() -> None:
    packer, unpacker = FramePacker(1e9), FrameUnpacker()
    made = scans(150)
    frames = [packer.frame(snapshot) for snapshot in made]
    assert [taken(unpacker, frame) for frame in frames] == made
    assert {type_of(frame) for frame in frames} == {FrameType.KEY, FrameType.CHANGE}
    assert type_of(frames[1]) == FrameType.CHANGE


def test_a_whole_snapshot_comes_as_often_as_wanted() -> None:
    packer = FramePacker(0.0)
    assert {type_of(packer.frame(snapshot)) for snapshot in scans(5)} == {FrameType.KEY}


@pytest.mark.parametrize("interval_s", [0.1, 0.5, 1.9, 2.0])
def test_a_late_listener_has_a_whole_snapshot_within_five_seconds(interval_s: float) -> None:
    """The sender sends at least every 2 s: a new snapshot, or the last one again."""
    clock = [100.0]
    udp = destination_of(stream_url.parse("udp://127.0.0.1:9"), None, False, 1200)
    packer = FramePacker(udp.key_every_s, now=lambda: clock[0])
    keys = []
    for snapshot in scans(int(30 / interval_s)):
        if type_of(packer.frame(snapshot)) == FrameType.KEY:
            keys.append(clock[0])
        clock[0] += interval_s
    assert max(b - a for a, b in pairwise(keys)) < 4.0
    assert clock[0] - keys[-1] < 4.0


def test_after_a_loss_the_next_whole_snapshot_counts() -> None:
    packer, unpacker = FramePacker(1e9), FrameUnpacker()
    made = scans(4)
    assert taken(unpacker, packer.frame(made[0])) == made[0]
    packer.frame(made[1])
    unpacker.forget()
    assert taken(unpacker, packer.frame(made[2])) is None
    packer.begin_anew()
    assert taken(unpacker, packer.frame(made[3])) == made[3]


def test_the_end_has_a_reason_without_control_characters() -> None:
    unpacker = FrameUnpacker()
    assert taken(unpacker, end_frame("over\x1b[2J" + "x" * 5000)) is None
    assert unpacker.ended is not None
    assert unpacker.ended.isprintable()
    assert len(unpacker.ended) <= 200


def test_a_snapshot_that_is_too_large_is_refused_and_the_next_is_whole() -> None:
    small = scenarios.normal()
    packer = FramePacker(1e9, max_frame=20_000)
    packer.frame(small)
    with pytest.raises(LocktopError, match="too large for the stream"):
        packer.frame(replace(small, notes=(random.Random(1).randbytes(20_000).hex(),)))
    assert type_of(packer.frame(small)) == FrameType.KEY


def test_sizes_beyond_a_stream_are_refused_from_the_header() -> None:
    for stored, unpacked in ((1 << 26, 1 << 20), (100, MAX_UNPACKED + 1)):
        head = frame_format.pack(FrameType.KEY, b"", 0, 1)
        head = head[:8] + stored.to_bytes(4, "little") + unpacked.to_bytes(4, "little") + head[16:]
        with pytest.raises(LocktopError):
            parse_header(head)


def test_damaged_and_random_frames_are_one_error_each() -> None:
    chosen = random.Random(11)
    whole = FramePacker(1e9).frame(scenarios.deadlock())
    payload = frame_format.unpack(whole[HEADER_SIZE:], parse_header(whole).unpacked)
    for _ in range(300):
        mutated = bytearray(payload)
        for _ in range(chosen.randrange(1, 4)):
            mutated[chosen.randrange(len(mutated))] = chosen.randrange(256)
        packed = frame_format.packed(bytes(mutated))
        valid = frame_format.pack(FrameType.KEY, packed, len(mutated), 1)
        cut = valid[: chosen.randrange(30, len(valid))]
        for frame in (valid, chosen.randbytes(200), b"x", b"", cut):
            with suppress(LocktopError):
                taken(FrameUnpacker(), frame)
