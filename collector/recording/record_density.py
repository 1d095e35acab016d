"""The parts of a span with too many ring records, or too many lost ones, to read each of them."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Callable, Sequence

from locktop.collector.analysis.timeline_counted import Pair, has_sums
from locktop.collector.model import ScanSample
from locktop.collector.recording.moments import HasBatches, Moments
from locktop.collector.shm import event_ring, slot_batch

#: Where more than this part of the records was lost, sums of the others say too little. Each entry
#: is for a span of at least so many pairs of scans. In a shorter span, counters say less than
#: records with gaps.
_MAX_LOST = ((8, 0.1), (3, 0.5))
#: Parts that are not much sparser than one with too many records have too many, too. Otherwise an
#: even load would be a patchwork of records and sums.
_ALIKE = 0.5


def counted_pairs(
    moments: Moments,
    samples: Sequence[ScanSample],
    max_records: int,
    lost_records: Callable[[int, int], int],
) -> tuple[list[Pair], float]:
    """Return the scans between which the counters tell the waits, and the records beside, about.

    Args:
        moments: has the records.
        samples: the scans of the span, and those just before and after it, the oldest first.
        max_records: the most records that are read one by one.
        lost_records: returns how many records were lost between two moments.
    """
    pairs = list(itertools.pairwise(samples))
    counts = _counts(moments, [sample.time_ns for sample in samples])
    limit = _densest(pairs, counts, max_records)
    max_lost = next((part for least, part in _MAX_LOST if len(pairs) >= least), 1.0)
    counted, left = [], 0.0
    for pair, count in zip(pairs, counts, strict=True):
        begin_ns, end_ns = pair[0].time_ns, pair[1].time_ns
        is_counted = count > limit * (end_ns - begin_ns)
        if not is_counted and max_lost < 1:
            lost = lost_records(begin_ns, end_ns)
            is_counted = lost > max_lost * (count + lost)
        if is_counted and has_sums(*pair):
            counted.append(pair)
        else:
            left += count
    return counted, left


def _densest(pairs: Sequence[Pair], counts: Sequence[float], max_records: int) -> float:
    """Return the most records in a nanosecond that a part may have to be read."""
    left = sum(counts)
    if left <= max_records:
        return float("inf")
    densities = sorted(
        (
            (count / max(1, pair[1].time_ns - pair[0].time_ns), count)
            for pair, count in zip(pairs, counts, strict=True)
        ),
        reverse=True,
    )
    limit = 0.0
    for density, count in densities:
        if left <= max_records:
            break
        left -= count
        limit = _ALIKE * density
    return limit


def _counts(moments: Moments, edges: Sequence[int]) -> list[float]:
    """Return how many records there are between each two moments, about."""
    counts = [0.0] * max(0, len(edges) - 1)
    if not counts:
        return counts
    if not isinstance(moments, HasBatches):
        for record in moments.records(edges[0], edges[-1]):
            counts[min(max(0, bisect_right(edges, record.got_ns) - 1), len(counts) - 1)] += 1
        return counts
    copied_ns = 0  # the time of the batch before, whose records are older
    for batch in moments.batches(edges[0], edges[-1]):
        begin_ns = max(copied_ns, slot_batch.first_ns(batch), edges[0])
        number = batch.packed or len(batch.records) // event_ring.SIZE
        _spread(counts, edges, begin_ns, batch.time_ns, number)
        copied_ns = batch.time_ns
    return counts


def _spread(
    counts: list[float], edges: Sequence[int], from_ns: int, to_ns: int, number: int
) -> None:
    """Add the records of one batch to the parts in which they lie."""
    length_ns = max(1, to_ns - from_ns)
    for part in range(max(0, bisect_right(edges, from_ns) - 1), len(counts)):
        if edges[part] >= to_ns:
            break
        common_ns = min(to_ns, edges[part + 1]) - max(from_ns, edges[part])
        counts[part] += number * max(0, common_ns) / length_ns
