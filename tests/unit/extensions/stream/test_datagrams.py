"""Datagrams: cut, put together in any order, counted; damaged ones are left out."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from locktop.collector.extensions.stream import datagrams
from locktop.collector.extensions.stream.datagrams import DatagramCounts, DatagramHeader, Reassembly


def cut(frame: bytes, number: int = 0, first: int = 0, size: int = 200) -> list[bytes]:
    return list(datagrams.split(frame, 77, number, first, size))


def joined(found: Reassembly, parts: list[bytes]) -> list[bytes]:
    """Return the frames that came of these datagrams."""
    parsed = [one for part in parts if (one := datagrams.parse(part)) is not None]
    frames = [found.add(header, data) for header, data in parsed]
    return [frame for frame in frames if frame is not None]


@pytest.mark.parametrize("size", [1, 164, 165, 5000])
def test_a_frame_comes_back_in_any_order(size: int) -> None:
    frame = random.Random(size).randbytes(size)
    parts = cut(frame)
    assert max(map(len, parts)) <= 200
    random.Random(1).shuffle(parts)
    (found,) = joined(Reassembly(), parts + parts)
    assert found.rstrip(b"\0") == frame.rstrip(b"\0")


def test_frames_that_interleave_come_back() -> None:
    one, other = b"a" * 1000, b"b" * 1000
    mixed = [part for pair in zip(cut(one, 0), cut(other, 1), strict=True) for part in pair]
    assert joined(Reassembly(), mixed) == [one, other]


def test_a_frame_that_misses_a_part_never_comes_and_is_forgotten() -> None:
    found = Reassembly()
    assert joined(found, cut(b"a" * 1000, 0)[2:]) == []
    assert found.size > 0
    assert joined(found, cut(b"b" * 1000, 1)) == [b"b" * 1000]
    assert found.size == 0
    assert joined(found, cut(b"a" * 1000, 0)[:1]) == [], "the frame is older than the last one"


@pytest.mark.parametrize("size", [1, 164, 165, 1312, 1313, 5000, 50_000])
def test_one_lost_part_of_each_group_is_made_again(size: int) -> None:
    frame = random.Random(size).randbytes(size)
    parts = cut(frame)
    groups = datagrams.groups_of(-(-size // 164))
    assert len(parts) == -(-size // 164) + groups
    for begin in range(0, len(parts) - groups + 1, max(1, groups // 3)):
        burst = parts[:begin] + parts[begin + groups :]
        (found,) = joined(Reassembly(), burst)
        assert found[:size] == frame
        assert found[size:].strip(b"\0") == b""


def test_unfinished_frames_take_bounded_memory() -> None:
    found, largest = Reassembly(max_bytes=10_000), 0
    for number in range(300):
        joined(found, cut(bytes(3000), number)[6:])
        largest = max(largest, found.size)
    assert largest <= 10_000
    assert joined(found, cut(b"x" * 900, 300)) == [b"x" * 900]


def test_forged_lengths_of_parts_take_no_memory() -> None:
    """One long part among short ones: the parts that are made again stay short."""
    parts = 800
    groups = datagrams.groups_of(parts)
    found, frame = Reassembly(), None
    for part in range(groups, parts + groups):
        data = bytes(60_000 if part == groups else 1)
        frame = found.add(DatagramHeader(7, part, 0, part, parts), data) or frame
    assert frame is not None
    assert len(frame) < 2 * 60_000 + parts


def test_parts_of_another_count_are_left_out() -> None:
    found, header = Reassembly(), DatagramHeader(7, 0, 0, 0, 2)
    assert found.add(header, b"a") is None
    assert found.add(DatagramHeader(7, 1, 0, 1, 3), b"x") is None
    assert found.add(DatagramHeader(7, 1, 0, 1, 2), b"b") == b"ab"


def test_every_damaged_datagram_is_left_out() -> None:
    whole, _ = cut(b"payload")
    assert datagrams.parse(whole) is not None
    for at in range(len(whole)):
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[at] ^= 1 << bit
            assert datagrams.parse(bytes(damaged)) is None, at
    for size in range(len(whole)):
        assert datagrams.parse(whole[:size]) is None


def test_losses_and_another_order_are_counted() -> None:
    counts = DatagramCounts(10)
    assert all(counts.add(number) for number in (10, 11, 14, 12))
    assert (counts.sent, counts.lost, counts.reordered) == (5, 1, 1)
    assert not counts.add(12), "it came before"
    assert counts.add(9), "it was sent before the first that arrived"
    assert (counts.sent, counts.lost, counts.reordered) == (5, 1, 1)
    assert counts.add(13)
    assert counts.lost == 0


def test_a_number_far_ahead_is_forged_and_missing_numbers_are_bounded() -> None:
    counts = DatagramCounts(0)
    assert counts.add(0)
    assert not counts.add(1 << 40)
    assert counts.add(1 << 20)
    assert counts.lost == (1 << 20) - 1
    assert not counts.add(5), "too old: it stays lost"
    assert counts.add((1 << 20) - 1)
    assert counts.lost == (1 << 20) - 2


def test_a_header_that_promises_much_takes_no_memory() -> None:
    """A frame of 58,000 parts has 7,250 groups."""
    found = Reassembly()
    tracemalloc.start()
    try:
        assert found.add(DatagramHeader(7, 0, 0, 0, 58_000), b"x") is None
        assert tracemalloc.get_traced_memory()[1] < 5_000
    finally:
        tracemalloc.stop()


def test_a_forged_frame_number_silences_a_stream_for_a_few_frames_only() -> None:
    found = Reassembly()
    assert joined(found, cut(b"a" * 1000, 0)) == [b"a" * 1000]
    assert joined(found, cut(b"forged" * 100, 100_000)) == [b"forged" * 100]
    sent = [bytes([number]) * 1000 for number in range(1, 10)]
    came = [
        frame for number, one in enumerate(sent, 1) for frame in joined(found, cut(one, number))
    ]
    assert came == sent[-len(came) :]
    assert len(came) >= 6


def test_parts_of_old_frames_are_no_sign_of_a_forged_number() -> None:
    found, late = Reassembly(), []
    for number in range(20):
        parts = cut(b"%03d" % number * 400, number)
        # The last part of each frame comes with the next frame.
        assert joined(found, [*parts[:-1], *late]) == [b"%03d" % number * 400]
        late = parts[-1:]


def test_forged_frames_far_ahead_that_never_finish_give_way() -> None:
    found = Reassembly()
    for number in range(100_000, 100_010):
        assert joined(found, cut(bytes(1000), number)[:1]) == []
    sent = [bytes([number]) * 1000 for number in range(1, 10)]
    assert [joined(found, cut(one, number)) for number, one in enumerate(sent)] == [
        [one] for one in sent
    ]


def test_a_forged_number_silences_a_stream_for_a_few_datagrams_only() -> None:
    counts = DatagramCounts(0)
    assert all(counts.add(number) for number in range(10))
    assert counts.add(1 << 20)
    taken = [counts.add(number) for number in range(10, 100)]
    assert taken.count(False) < 16
    assert all(taken[16:])
    assert counts.lost == 0


def test_datagrams_that_come_twice_are_no_sign_of_a_forged_number() -> None:
    counts = DatagramCounts(0)
    taken = [counts.add(number) for number in range(100) for _ in range(2)]
    assert taken == [True, False] * 100


def test_the_channels_come_back() -> None:
    for channel in (datagrams.SNAPSHOTS, datagrams.RECORDS):
        (first, *_) = datagrams.split(b"x", 1, 0, 0, 200, channel)
        parsed = datagrams.parse(first)
        assert parsed is not None
        assert parsed[0].channel == channel
    (other, *_) = datagrams.split(b"x", 1, 0, 0, 200, 2)
    assert datagrams.parse(other) is None
