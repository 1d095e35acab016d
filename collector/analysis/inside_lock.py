"""Which samples of a thread were taken while it held a contended lock: a join by time.

The rings have a record of each hold that began with a wait. Of other holds that threads waited for,
the rings have most. A sample of the record's thread within that hold is inside the lock. Some
holders took the lock without a wait, and no record of their hold is left. There a wait tells: it
names the thread that held the lock when the wait began.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from locktop.collector.model import HeldSpan, HolderSample, WaitRecord
from locktop.collector.model.kinds import EXCLUSIVE_KINDS


def recorded_spans(records: Iterable[WaitRecord]) -> list[HeldSpan]:
    """Return the holds that have records."""
    return [
        HeldSpan(tid=one.tid, lock=one.lock, begin_ns=one.got_ns, end_ns=one.end_ns, site=one.site)
        for one in records
        if one.hold_ns is not None and not one.timed_out
    ]


def unrecorded_spans(
    waits: Iterable[WaitRecord],
    records: Iterable[WaitRecord],
    recorded: Set[tuple[int, int]] = frozenset(),
) -> list[HeldSpan]:
    """Return the holds without a record that waits name.

    Such a hold is known from the begin of the wait. The hold ends with the wait at the latest. The
    hold ends earlier if another thread gets the lock, or if the holder wants the lock again. A
    thread whose holds of the lock have records has no other holds: it had released the lock.

    Args:
        waits: waits that are over or go on.
        records: all records that touch the waits.
        recorded: pairs of tid and lock with a recorded hold at any time.
    """
    of_lock: dict[int, list[WaitRecord]] = {}
    for one in records:
        of_lock.setdefault(one.lock, []).append(one)
    spans = []
    for wait in waits:
        if not wait.holder or wait.kind not in EXCLUSIVE_KINDS or wait.holder == wait.tid:
            continue
        if (wait.holder, wait.lock) in recorded:
            continue
        end_ns = _unrecorded_end(wait, of_lock.get(wait.lock, ()))
        if end_ns > wait.began_ns:
            spans.append(
                HeldSpan(
                    tid=wait.holder, lock=wait.lock, begin_ns=wait.began_ns, end_ns=end_ns, site=0
                )
            )
    return spans


def _unrecorded_end(wait: WaitRecord, records: Iterable[WaitRecord]) -> int:
    """Return the end of the hold that a wait names; no later than its begin if there is none."""
    begin_ns = wait.began_ns
    end_ns = wait.got_ns
    for one in records:
        if one.end_ns <= begin_ns or one.began_ns >= end_ns:
            continue
        held = one.hold_ns is not None and not one.timed_out
        if one.tid == wait.holder:
            if held and one.got_ns < wait.got_ns:
                return begin_ns
            end_ns = min(end_ns, max(one.began_ns, begin_ns))
        elif held and one.end_ns > begin_ns:
            end_ns = min(end_ns, max(one.got_ns, begin_ns))
    return end_ns


def charged(
    samples: Mapping[int, Sequence[HolderSample]], spans: Iterable[HeldSpan]
) -> Iterator[tuple[HeldSpan, HolderSample]]:
    """Yield each span with each sample of its thread within it.

    Nested spans have the same samples: a sample belongs to every lock that its thread held. A
    sample that took some time lies within the span as a whole. Otherwise the thread may have slept
    after the hold: short holds would get the sleeps between them.

    Args:
        samples: by tid, in the order of time.
    """
    for span in spans:
        of_thread = samples.get(span.tid, ())
        at = bisect_left(of_thread, span.begin_ns, key=_time)
        while at < len(of_thread) and of_thread[at].time_ns < span.end_ns:
            if of_thread[at].read_ns < span.end_ns:
                yield span, of_thread[at]
            at += 1


def _time(sample: HolderSample) -> int:
    return sample.time_ns
