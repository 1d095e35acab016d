"""Which samples of a thread were taken while it held a contended lock: a join by time.

The rings have a record of each hold that began with a wait. Of other holds that threads waited for,
the rings have most. A sample of the record's thread within that hold is inside the lock. Some
holders took the lock without a wait, and no record of their hold is left. There a wait tells: it
names the thread that held the lock when the wait began.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from locktop.collector.extensions.inside.model import HeldSpan, HolderSample
from locktop.collector.model import WaitRecord
from locktop.collector.model.kinds import EXCLUSIVE_KINDS


def recorded_spans(records: Iterable[WaitRecord]) -> list[HeldSpan]:
    """Return the holds that have records."""
    return [
        HeldSpan(
            tid=record.tid,
            lock=record.lock,
            begin_ns=record.got_ns,
            end_ns=record.end_ns,
            site=record.site,
        )
        for record in records
        if record.hold_ns is not None and not record.timed_out and not record.is_release
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
    for record in records:
        of_lock.setdefault(record.lock, []).append(record)
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
    for record in records:
        if record.end_ns <= begin_ns or record.began_ns >= end_ns:
            continue
        held = record.hold_ns is not None and not record.timed_out
        if record.tid == wait.holder:
            if held and record.got_ns < wait.got_ns:
                return begin_ns
            end_ns = min(end_ns, max(record.began_ns, begin_ns))
        elif held and record.end_ns > begin_ns:
            end_ns = min(end_ns, max(record.got_ns, begin_ns))
    return end_ns


def charge(
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
        index = bisect_left(of_thread, span.begin_ns, key=_time)
        while index < len(of_thread) and of_thread[index].time_ns < span.end_ns:
            if of_thread[index].read_ns < span.end_ns:
                yield span, of_thread[index]
            index += 1


def _time(sample: HolderSample) -> int:
    return sample.time_ns
