"""How long hand-overs of locks take: from the release until the woken thread runs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import pairwise

from locktop.collector.extensions.whatif.analysis.evidence import ThreadTimes
from locktop.collector.model import Kind, WaitRecord

#: A hand-over where too few are known, nanoseconds; and how many are few.
_DEFAULT_WAKE_NS, _MIN_GAPS = 30_000, 8
#: The longest hand-over to a thread that still tries, and does not sleep.
_BRIEF_NS = 8000
#: Cases of a distribution.
_WAKES = 64


def hand_overs(records: Iterable[WaitRecord]) -> list[int]:
    """Return how long each hand-over of a mutex took: from the release until the waiter had it."""
    by_lock: dict[int, list[WaitRecord]] = {}
    for record in records:
        if record.kind is Kind.MUTEX and record.hold_ns is not None:
            by_lock.setdefault(record.lock, []).append(record)
    gaps_ns = []
    for of_lock in by_lock.values():
        of_lock.sort(key=_got)
        for before, after in pairwise(of_lock):
            if after.wait_ns and after.began_ns < before.end_ns <= after.got_ns:
                gaps_ns.append(after.got_ns - before.end_ns)
    return sorted(gaps_ns)


def wakes(gaps_ns: Sequence[int], times: Iterable[ThreadTimes]) -> tuple[int, ...]:
    """Return how long a woken thread takes until it is ready, in some cases, nanoseconds.

    Args:
        gaps_ns: as from hand_overs(), sorted.
        times: of all threads. Where they wait for CPUs, so do the woken ones. The simulation adds
            that wait, so each long gap stands for a shorter one.
    """
    if len(gaps_ns) < _MIN_GAPS:
        return (_DEFAULT_WAKE_NS,)
    all_times = list(times)
    ready_ns = sum(thread.cpu_ns + thread.queued_ns for thread in all_times)
    queued = sum(thread.queued_ns for thread in all_times) / ready_ns if ready_ns else 0.0
    brief = bisect_left(gaps_ns, _BRIEF_NS)  # of threads that did not sleep yet
    cases = []
    for number in range(_WAKES):
        index = len(gaps_ns) * number // _WAKES
        cases.append(
            gaps_ns[index if index < brief else brief + int((index - brief) * (1 - queued))]
        )
    return tuple(cases)


def _got(record: WaitRecord) -> int:
    return record.got_ns
