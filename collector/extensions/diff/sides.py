"""Reads one side of a comparison: a snapshot, or a span of a recording or of the memory."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from msgspec.structs import replace

from locktop.collector.analysis.figures_since import is_same_program, since
from locktop.collector.analysis.lock_classes import is_unnamed
from locktop.collector.errors import LocktopError
from locktop.collector.extensions.diff.model import (
    Figures,
    LockGroup,
    MatchKey,
    Piece,
    Side,
    replace_numbers,
)
from locktop.collector.model import Lock, Snapshot
from locktop.collector.recording.chosen_moment import span_at, span_ns
from locktop.collector.recording.moments import HasMarks, Moments
from locktop.collector.recording.time_lines import KnowsLosses

#: A span is cut into so many pieces at most. More would take longer to read, and say little more.
MAX_PIECES = 32


def side_of_snapshot(snapshot: Snapshot, title: str) -> Side:
    """Return a snapshot as one piece: the time since its counters began.

    Raises:
        LocktopError: the snapshot covers no time.
    """
    if snapshot.duration_s <= 0:
        raise LocktopError(f"{title}: this snapshot covers no time, so it has no rates")
    return _side([snapshot.locks], [snapshot.duration_s], snapshot, title)


def side_of_recording(moments: Moments, begin: str | None, end: str | None, title: str) -> Side:
    """Return a span of a recording.

    Args:
        moments: the recording.
        begin: the time as the user gives it; None for the first snapshot.
        end: the same for the end; None for the last snapshot.
        title: what the user named.

    Raises:
        LocktopError: a text names no time of the recording, or the span has one snapshot alone.
    """
    return side_of_span(moments, *span_ns(moments, begin, end), title)


def side_of_span(moments: Moments, begin_ns: int, end_ns: int, title: str) -> Side:
    """Return a span, cut into pieces at snapshots. See side_of_recording."""
    span = span_at(moments, begin_ns, end_ns)
    first, last = span.before, span.snapshot
    assert first is not None
    times = moments.times_ns()
    snapshots, borders = [first], [_snapshot_time(times, begin_ns)]
    for time_ns in _inner_times(times, begin_ns, end_ns):
        snapshot = moments.snapshot_at(time_ns)
        is_later = snapshots[-1].duration_s < snapshot.duration_s < last.duration_s
        if is_later and is_same_program(snapshot, last):
            snapshots.append(snapshot)
            borders.append(time_ns)
    snapshots.append(last)
    marks, is_lossy = _marks(moments, [*borders, _snapshot_time(times, end_ns)])
    side = _side(
        [_grown(*pair) for pair in pairwise(snapshots)],
        [later.duration_s - earlier.duration_s for earlier, later in pairwise(snapshots)],
        last,
        title,
        marks,
    )
    return replace(side, marks_lost=is_lossy)


def _snapshot_time(times: Sequence[int], time_ns: int) -> int:
    """Return the time of the newest snapshot at a moment or before."""
    return times[max(0, bisect_right(times, time_ns) - 1)]


def _inner_times(times: Sequence[int], begin_ns: int, end_ns: int) -> Sequence[int]:
    """Return the times within a span at which it is cut."""
    inner = [time_ns for time_ns in times if begin_ns < time_ns < end_ns]
    if len(inner) < MAX_PIECES:
        return inner
    return [inner[number * len(inner) // MAX_PIECES] for number in range(1, MAX_PIECES)]


def _grown(before: Snapshot, after: Snapshot) -> Sequence[Lock]:
    """Return the locks that were used between two snapshots, with the figures of that time."""
    earlier = {lock.id: lock for lock in before.locks}
    used = tuple(lock for lock in after.locks if _counters(lock) != _counters(earlier.get(lock.id)))
    return since(replace(after, locks=used, threads=()), before).locks


def _counters(lock: Lock | None) -> tuple[float | None, ...]:
    if lock is None:
        return ()
    return lock.address, lock.acquisitions, lock.contended, lock.wait_s, lock.hold_s


def _marks(moments: Moments, borders: Sequence[int]) -> tuple[Sequence[Mapping[str, int]], bool]:
    """Return the number of marks of each piece by text, and whether some marks are lost."""
    counts: list[Counter[str]] = [Counter() for _ in borders[1:]]
    if not isinstance(moments, HasMarks):
        return counts, False
    try:
        marks = moments.marks(borders[0], borders[-1])
    except LocktopError:  # too many of them, or damaged
        return counts, True
    for mark in marks:
        number = bisect_left(borders, mark.time_ns) - 1
        counts[min(max(number, 0), len(counts) - 1)][replace_numbers(mark.text)] += 1
    lost = moments.lost_records(borders[0], borders[-1]) if isinstance(moments, KnowsLosses) else 0
    # None: the scans made the records, and lost none.
    return counts, bool(marks) and bool(lost)


def _side(
    locks: Sequence[Sequence[Lock]],
    durations_s: Sequence[float],
    last: Snapshot,
    title: str,
    marks: Sequence[Mapping[str, int]] = ({},),
) -> Side:
    # A later snapshot may know the name of a lock that had none.
    every = {_identity(lock): lock for used in (*locks, last.locks) for lock in used}
    keys = {identity: _key(lock) for identity, lock in every.items()}
    return Side(
        title=title,
        comm=last.process.comm,
        pid=last.process.pid,
        duration_s=sum(durations_s),
        locks=_groups(every.values()),
        pieces=[
            Piece(duration_s, _sum_by_key(used, keys), marks_of_piece)
            for used, duration_s, marks_of_piece in zip(locks, durations_s, marks, strict=True)
        ],
        is_sampled=last.is_sampled,
        notes=last.notes,
    )


def _identity(lock: Lock) -> tuple[int, int]:
    return lock.id, lock.generation


def _key(lock: Lock) -> MatchKey:
    return MatchKey(lock.kind, replace_numbers(lock.name))


def _sum_by_key(
    locks: Iterable[Lock], keys: Mapping[tuple[int, int], MatchKey]
) -> Mapping[MatchKey, Figures]:
    figures: dict[MatchKey, Figures] = {}
    for lock in locks:
        figures.setdefault(keys[_identity(lock)], Figures()).add(_figures(lock))
    return figures


def _figures(lock: Lock) -> Figures:
    return Figures(
        wait_s=max(lock.wait_s - lock.idle_s, 0.0),
        contended=None if lock.idle_s else float(lock.contended),
        acquisitions=None if lock.acquisitions is None else float(lock.acquisitions),
        hold_s=lock.hold_s,
    )


def _groups(locks: Iterable[Lock]) -> Mapping[MatchKey, LockGroup]:
    names: dict[MatchKey, list[str]] = {}
    for lock in locks:
        # Only an address differs between nameless locks.
        name = replace_numbers(lock.name) if is_unnamed(lock) else lock.name
        names.setdefault(_key(lock), []).append(name)
    return {
        key: LockGroup(len(names_of_key), tuple(dict.fromkeys(names_of_key)))
        for key, names_of_key in names.items()
    }
