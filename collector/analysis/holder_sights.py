"""The holders of a lock as single scans show them.

A short hold has neither a record nor an age, so nobody knows how long it lasts. But a scan shows
who has the lock at its moment. Where readers take turns, each scan shows some of them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Sequence

from locktop.collector.model import HolderSight, HoldersSeen, LockHolds, ScanSample


def sights_by_lock(
    samples: Sequence[ScanSample], locks: Collection[int]
) -> dict[int, list[HolderSight]]:
    """Return the scans that show a holder of a lock, the oldest first, by lock.

    Args:
        samples: the scans, the oldest first.
        locks: the locks that count.
    """
    sights: dict[int, list[HolderSight]] = {}
    for sample in samples:
        tids: dict[int, list[int]] = {}
        shared: set[int] = set()
        for tid, thread in sample.threads.items():
            for held in thread.holds:
                if held.lock in locks:
                    tids.setdefault(held.lock, []).append(tid)
                    shared |= {held.lock} if held.shared else set()
        for lock in tids.keys() | (sample.readers.keys() & locks):
            sight = HolderSight(
                time_ns=sample.time_ns,
                tids=tuple(tids.get(lock, ())),
                are_readers=lock in shared or lock not in tids,
            )
            sights.setdefault(lock, []).append(sight)
    return sights


def seen_during(holds: LockHolds, from_ns: int, to_ns: int) -> HoldersSeen | None:
    """Return whom the scans of a span show as holders; None if no scan shows any."""
    first = bisect_left(holds.scan_times, from_ns)
    scans = bisect_right(holds.scan_times, to_ns) - first
    begin = bisect_left(holds.sights, from_ns, key=lambda sight: sight.time_ns)
    end = bisect_right(holds.sights, to_ns, key=lambda sight: sight.time_ns)
    sights = holds.sights[begin:end]
    if not sights:
        return None
    often = Counter(tid for sight in sights for tid in sight.tids)
    return HoldersSeen(
        scans=scans,
        held=len(sights),
        tids=tuple(tid for tid, _ in often.most_common()),
        are_readers=all(sight.are_readers for sight in sights),
    )
