"""Histograms: how often waits or holds had which length."""

from __future__ import annotations

import math
import struct
from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate
from typing import TYPE_CHECKING

from msgspec import Struct

#: Numbers of buckets. The lengths of the last bucket end with the largest number of 64 bits.
BUCKETS = 252
_IN_POWER = 4  # buckets of each power of two
_PACKED_SIZE = 9  # bytes of a bucket in a PackedHistogram


def lower_ticks(bucket: int) -> int:
    """Return the shortest length that a bucket counts, in ticks.

    Each power of two has four buckets, so a bucket is 14 % to 25 % wide.
    """
    if bucket < _IN_POWER:
        return bucket
    return (_IN_POWER + bucket % _IN_POWER) << (bucket // _IN_POWER - 1)


def bucket_of(ticks: int) -> int:
    """Return the number of the bucket that counts lengths of so many ticks."""
    if ticks < _IN_POWER:
        return max(ticks, 0)
    power = ticks.bit_length() - 1
    return min((power - 1) * _IN_POWER + (ticks >> (power - 2)) % _IN_POWER, BUCKETS - 1)


class Histogram:
    """The numbers of waits or holds by length. At least one bucket has a count.

    Only buckets with counts are kept. The bounds are exact in ticks of the target's clock.
    """

    __slots__ = ()

    if TYPE_CHECKING:
        hz: float  # ticks of a second
        left_out: int  # waits or holds that found no room in a bucket

        @property
        def buckets(self) -> tuple[int, ...]:
            """The numbers of the buckets, rising."""

        @property
        def counts(self) -> tuple[int, ...]:
            """The waits or holds in each of ``buckets``."""

    @property
    def count(self) -> int:
        """The number of waits or holds in all buckets."""
        return sum(self.counts)

    @property
    def from_s(self) -> list[float]:
        """The lower bound of each of ``buckets`` in seconds."""
        return [lower_ticks(bucket) / self.hz for bucket in self.buckets]

    @property
    def to_s(self) -> list[float]:
        """The upper bound of each of ``buckets`` in seconds; it belongs to the next bucket."""
        return [lower_ticks(bucket + 1) / self.hz for bucket in self.buckets]

    def percentile_s(self, percent: int) -> float | None:
        """Return the length in seconds that so many percent of the lengths do not exceed.

        The value is the geometric middle of the bucket. None: the lengths that were left out could
        change the bucket.
        """
        totals = list(accumulate(self.counts))
        rank = max(-(-percent * (totals[-1] + self.left_out) // 100), 1)
        index = bisect_left(totals, rank)  # if all that were left out were long
        lowest = rank - self.left_out  # if all of them were short
        if lowest < 1 or index == len(totals) or index != bisect_left(totals, lowest):
            return None
        bucket = self.buckets[index]
        return math.sqrt(lower_ticks(bucket) * lower_ticks(bucket + 1)) / self.hz

    def since(self, before: Histogram | None) -> Histogram | None:
        """Return the lengths that were added after ``before``; None if there are none."""
        if before is None:
            return self
        counts = _counts((self,))
        for bucket, count in zip(before.buckets, before.counts, strict=True):
            counts[bucket] -= count
        return _histogram(counts, self.hz, max(self.left_out - before.left_out, 0))

    def check(self) -> None:
        """Raise ValueError for the fields of a stranger that are no histogram."""
        buckets = self.buckets
        if not buckets or len(buckets) != len(self.counts) or min(self.counts) < 0:
            raise ValueError("a histogram with wrong counts")
        if list(buckets) != sorted(set(buckets)) or not 0 <= buckets[0] <= buckets[-1] < BUCKETS:
            raise ValueError("a histogram with wrong buckets")
        if not 1 <= self.hz <= 1e12 or self.left_out < 0:
            raise ValueError("a histogram with an impossible clock")


class PlainHistogram(Histogram, Struct, array_like=True, frozen=True, gc=False):
    """A histogram as its fields; see Histogram. Documents and recordings have these."""

    buckets: tuple[int, ...]
    counts: tuple[int, ...]
    hz: float
    left_out: int = 0


class PackedHistogram(Histogram):
    """A histogram that is unpacked at each use: a crowd of threads has many, and few are read."""

    __slots__ = ("_packed", "hz", "left_out")

    def __init__(self, packed: bytes, hz: float, left_out: int = 0) -> None:
        """``packed``: a byte for the number of each bucket, then 8 bytes for each count."""
        self._packed = packed
        self.hz = hz
        self.left_out = left_out

    @property
    def buckets(self) -> tuple[int, ...]:
        return tuple(self._packed[: len(self._packed) // _PACKED_SIZE])

    @property
    def counts(self) -> tuple[int, ...]:
        count = len(self._packed) // _PACKED_SIZE
        return struct.unpack_from(f"={count}Q", self._packed, count)

    def unpack(self) -> PlainHistogram:
        """Return the same histogram with its fields."""
        return PlainHistogram(
            buckets=self.buckets, counts=self.counts, hz=self.hz, left_out=self.left_out
        )

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PackedHistogram):
            return self.unpack() == other.unpack()
        return self.unpack() == other

    def __hash__(self) -> int:
        return hash(self.unpack())


# A saved snapshot has plain ones.
if TYPE_CHECKING:
    KeptHistogram = Histogram
else:
    KeptHistogram = PlainHistogram


def percentile_s(histogram: Histogram | None, percent: int, max_s: float | None) -> float | None:
    """Return Histogram.percentile_s(), but at most ``max_s``; None without a histogram."""
    length_s = histogram.percentile_s(percent) if histogram is not None else None
    return length_s if length_s is None or max_s is None else min(length_s, max_s)


def merge(histograms: Iterable[Histogram | None]) -> Histogram | None:
    """Return the sum of the histograms of one process; None if there are none."""
    parts = [histogram for histogram in histograms if histogram is not None]
    if len(parts) < 2:
        return parts[0] if parts else None
    return _histogram(_counts(parts), parts[0].hz, sum(part.left_out for part in parts))


def _counts(histograms: Iterable[Histogram]) -> list[int]:
    """Return the sum of the counts of each bucket. In a list, that takes half the time."""
    counts = [0] * BUCKETS
    for histogram in histograms:
        for bucket, count in zip(histogram.buckets, histogram.counts, strict=True):
            counts[bucket] += count
    return counts


def _histogram(counts: list[int], hz: float, left_out: int) -> Histogram | None:
    buckets = tuple([bucket for bucket, count in enumerate(counts) if count > 0])
    if not buckets:
        return None
    return PlainHistogram(
        buckets=buckets,
        counts=tuple([counts[bucket] for bucket in buckets]),
        hz=hz,
        left_out=left_out,
    )
