"""Sums of waits from the counters of scans, for time with too many records to read one by one.

The library counts each wait, whether or not its record is kept. So between two scans the sums are
exact: of each thread, and of each lock. They do not say which thread waited for which lock.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from locktop.collector.analysis.timeline import CellKey
from locktop.collector.model import (
    CountedSpan,
    Lane,
    LaneSpan,
    LaneState,
    ScanSample,
    TimedWait,
    TimeLine,
)

#: Two scans, the earlier one first.
Pair = tuple[ScanSample, ScanSample]
_NS = 1e9
#: A lock with this part of all waiting is taken for the only one.
_ONLY_LOCK = 0.999


def has_sums(before: ScanSample, after: ScanSample) -> bool:
    """Return whether the counters of the later scan go on from those of the earlier one."""
    return not after.is_sampled and not after.is_first and bool(after.threads)


def lock_spans(pairs: Iterable[Pair]) -> tuple[CountedSpan, ...]:
    """Return what all threads together waited for each lock in contention, between two scans."""
    return tuple(
        CountedSpan(from_ns=before.time_ns, to_ns=after.time_ns, sums=_lock_sums(before, after))
        for before, after in pairs
    )


def _lock_sums(before: ScanSample, after: ScanSample) -> dict[CellKey, int]:
    sums = {}
    for lock, (wait_s, idle_s) in after.lock_waits.items():
        wait_before_s, idle_before_s = before.lock_waits.get(lock, (0.0, 0.0))
        # A name that is read late may make earlier waits idle, or not.
        idle_ns = _growth_ns(idle_before_s, idle_s)
        ns = _growth_ns(wait_before_s, wait_s)
        ns -= min(ns, idle_ns)
        if ns and idle_s < wait_s:
            sums[LaneState.WAITING, lock] = ns
    return sums


def _growth_ns(before_s: float, after_s: float) -> int:
    return max(0, round((after_s - before_s) * _NS))


def apply_counters(line: TimeLine, pairs: Sequence[Pair]) -> TimeLine:
    """Return the time line with sums in place of the waits between some scans.

    Args:
        line: made of what is known beside these waits.
        pairs: scans in a row, which do not overlap, the oldest first.
    """
    if not pairs:
        return line
    counted = lock_spans(pairs)
    only_locks = [_only_lock(span) for span in counted]
    lanes = [_counted_lane(lane, line, pairs, only_locks) for lane in line.lanes]
    lanes.sort(key=lambda lane: (-lane.wait_ns, lane.tid))
    return replace(line, lanes=tuple(lanes), counted=counted)


def _only_lock(span: CountedSpan) -> int:
    """Return the lock that threads waited for in a span, if there is only one; else 0."""
    whole = sum(span.sums.values())
    most, lock = max(((ns, lock) for (_, lock), ns in span.sums.items()), default=(0, 0))
    return lock if most > _ONLY_LOCK * whole else 0


def _counted_lane(
    lane: Lane, line: TimeLine, pairs: Sequence[Pair], only_locks: Sequence[int]
) -> Lane:
    counted = tuple(
        CountedSpan(
            from_ns=before.time_ns,
            to_ns=after.time_ns,
            sums=_thread_sums(lane.tid, before, after, lock),
        )
        for (before, after), lock in zip(pairs, only_locks, strict=True)
    )
    spans = _cut_spans(lane.spans, counted)
    waited_ns = sum(s.to_ns - s.from_ns for s in spans if s.state is LaneState.WAITING)
    waited_ns += sum(_waited_ns(span, line.from_ns, line.to_ns) for span in counted)
    begins = [span.from_ns for span in counted]
    waits = tuple(wait for wait in lane.waits if not _is_inside(wait, counted, begins))
    return replace(lane, spans=spans, waits=waits, wait_ns=waited_ns, counted=counted)


def _thread_sums(
    tid: int, before: ScanSample, after: ScanSample, only_lock: int
) -> dict[CellKey, int]:
    """Return the partition of the time of one thread; the rest is what the later scan shows."""
    now, then = after.threads.get(tid), before.threads.get(tid)
    if now is None or then is None:
        return {}
    left = after.time_ns - before.time_ns
    waited = min(left, _growth_ns(then.contended_s, now.contended_s))
    left -= waited
    idle = min(left, _growth_ns(then.idle_s, now.idle_s))
    left -= idle
    sums: dict[CellKey, int] = {
        (LaneState.WAITING, only_lock): waited,
        (LaneState.IDLE, 0): idle,
        (now.state, 0): left,
    }
    return {key: ns for key, ns in sums.items() if ns}


def _waited_ns(span: CountedSpan, from_ns: int, to_ns: int) -> int:
    """Return what was waited in the part of a counted span that lies between two moments."""
    waited = sum(ns for (state, _), ns in span.sums.items() if state is LaneState.WAITING)
    part_ns = min(to_ns, span.to_ns) - max(from_ns, span.from_ns)
    return waited * max(0, part_ns) // (span.to_ns - span.from_ns)


def _cut_spans(spans: Sequence[LaneSpan], counted: Sequence[CountedSpan]) -> tuple[LaneSpan, ...]:
    """Return the parts of spans that lie in no counted span."""
    begins = [span.from_ns for span in counted]
    parts: list[LaneSpan] = []
    for span in spans:
        at_ns = span.from_ns
        for number in range(max(0, bisect_right(begins, at_ns) - 1), len(counted)):
            cut = counted[number]
            if cut.from_ns >= span.to_ns:
                break
            if cut.from_ns > at_ns:
                parts.append(replace(span, from_ns=at_ns, to_ns=cut.from_ns))
            at_ns = max(at_ns, cut.to_ns)
        if at_ns == span.from_ns:
            parts.append(span)
        elif at_ns < span.to_ns:
            parts.append(replace(span, from_ns=at_ns))
    return tuple(parts)


def _is_inside(wait: TimedWait, counted: Sequence[CountedSpan], begins: Sequence[int]) -> bool:
    """Return whether a wait is over, and lies in one counted span: its time is in the sums."""
    record = wait.record
    number = bisect_right(begins, record.began_ns) - 1
    return number >= 0 and not wait.is_open and record.got_ns <= counted[number].to_ns
