"""Datagrams: cut, put together in any order, counted; damaged ones are left out."""

from __future__ import annotations

import random

import pytest

from locktop.collector.stream import datagrams
from locktop.collector.stream.datagrams import DatagramCounts, DatagramHeader, Reassembly


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
