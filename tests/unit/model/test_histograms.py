"""Histograms: the bounds of buckets, percentiles, sums and differences."""

from __future__ import annotations

import math
import random
import struct

import pytest
from msgspec.structs import replace
from unit.builders import records

from locktop.collector.model.histograms import (
    BUCKETS,
    PackedHistogram,
    PlainHistogram,
    bucket_of,
    lower_ticks,
    merge,
    percentile_s,
)
from locktop.collector.native import lib

HZ = 1e9
of_ticks = records.histogram


def test_the_buckets_follow_each_other() -> None:
    assert BUCKETS == lib.LT_BUCKETS
    for bucket in range(BUCKETS):
        assert bucket_of(lower_ticks(bucket)) == bucket
        assert bucket_of(lower_ticks(bucket + 1) - 1) == bucket
    assert lower_ticks(BUCKETS) == 2**64


def test_a_bucket_is_at_most_a_quarter_wide() -> None:
    for bucket in range(4, BUCKETS):
        assert 1.14 < lower_ticks(bucket + 1) / lower_ticks(bucket) <= 1.25


def test_the_bounds_are_in_seconds() -> None:
    found = of_ticks(1_000_000, 1_000_000, 50)
    assert found.from_s == [48e-9, 917504e-9]
    assert found.to_s == [56e-9, 1048576e-9]
    assert found.count == 3


@pytest.mark.parametrize("percent", [50, 99, 100])
def test_a_percentile_lies_in_the_bucket_of_that_rank(percent: int) -> None:
    chance = random.Random(percent)
    for _ in range(50):
        lengths = [int(10 ** chance.uniform(1, 9)) for _ in range(chance.randint(1, 300))]
        rank = math.ceil(percent * len(lengths) / 100)
        bucket = bucket_of(sorted(lengths)[rank - 1])
        middle = math.sqrt(lower_ticks(bucket) * lower_ticks(bucket + 1))
        assert of_ticks(*lengths).percentile_s(percent) == pytest.approx(middle / HZ)


def test_lengths_that_were_left_out_may_hide_a_percentile() -> None:
    lengths = [1000] * 990 + [9000] * 9 + [50000]
    assert of_ticks(*lengths, left_out=1).percentile_s(50) is not None
    assert of_ticks(*lengths, left_out=500).percentile_s(50) == of_ticks(1000).percentile_s(50)
    assert of_ticks(*lengths, left_out=1000).percentile_s(50) is None
    assert of_ticks(*lengths, left_out=5).percentile_s(99) is None
    assert of_ticks(1000, left_out=1).percentile_s(99) is None


def test_a_percentile_is_no_longer_than_the_longest() -> None:
    assert percentile_s(of_ticks(1_000_000), 99, 0.00095) == 0.00095
    assert percentile_s(of_ticks(1_000_000), 99, 0.001) == pytest.approx(0.00098, rel=0.01)
    assert percentile_s(of_ticks(1_000_000), 99, None) == pytest.approx(0.00098, rel=0.01)
    assert percentile_s(None, 99, 1.0) is None


def test_a_difference_has_what_was_added() -> None:
    before, now = of_ticks(10, 500, left_out=2), of_ticks(10, 10, 500, 9000, left_out=5)
    assert now.since(before) == of_ticks(10, 9000, left_out=3)
    assert now.since(None) == now
    assert now.since(now) is None


def test_a_sum_has_the_counts_of_all() -> None:
    one, other = of_ticks(10, 500, left_out=2), of_ticks(10, 9000)
    assert merge([one, None, other]) == of_ticks(10, 10, 500, 9000, left_out=2)
    assert merge([None, one]) == one
    assert merge([None]) is None
    chance = random.Random(5)
    for _ in range(100):
        lengths = [
            [int(10 ** chance.uniform(0, 19)) for _ in range(chance.randint(1, 40))]
            for _ in range(chance.randint(1, 5))
        ]
        parts = [of_ticks(*some) for some in lengths]
        assert merge(parts) == of_ticks(*[length for some in lengths for length in some])


def packed(plain: PlainHistogram) -> PackedHistogram:
    data = bytes(plain.buckets) + struct.pack(f"={len(plain.counts)}Q", *plain.counts)
    return PackedHistogram(data, plain.hz, plain.left_out)


def test_a_packed_histogram_is_like_a_plain_one() -> None:
    plain, other = of_ticks(10, 10, 9000, left_out=3), of_ticks(10)
    kept = packed(plain)
    assert kept.unpack() == kept == plain == kept
    assert kept == packed(plain) != packed(other)
    assert kept != other != kept
    assert hash(kept) == hash(plain)
    assert kept.since(packed(other)) == plain.since(other)
    assert merge([kept, other]) == merge([plain, other])


@pytest.mark.parametrize(
    "changed",
    [
        {"buckets": (), "counts": ()},
        {"counts": (1,)},
        {"counts": (1, -1)},
        {"buckets": (5, 5)},
        {"buckets": (9, 5)},
        {"buckets": (-1, 5)},
        {"buckets": (5, BUCKETS)},
        {"buckets": (5, 10**30)},
        {"hz": 0.0},
        {"hz": math.nan},
        {"left_out": -1},
    ],
)
def test_what_is_no_histogram_is_refused(changed: dict[str, object]) -> None:
    sound = of_ticks(10, 500)
    sound.check()
    with pytest.raises(ValueError, match="a histogram with"):
        replace(sound, **changed).check()
