"""The pressure of locks in the last minute, from the snapshots of a memory or a recording."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from locktop.collector.analysis.lock_pressure import PressurePoint, pressure
from locktop.collector.model import Lock, Snapshot
from locktop.collector.recording.moments import Moments

#: The length of a phase, and how far back the phases go. Phases begin at whole multiples of their
#: length, so each snapshot at a border is read once.
PHASE_S, SPAN_S = 10, 60
#: Shorter parts of a phase, at the begin of a memory, say too little.
_MIN_PHASE_S = 1.0
_NS = 1_000_000_000


class PressurePhase(Struct, frozen=True, gc=False):
    """The pressure of a lock in one span of time."""

    share: float  # of all threads' time that went into waits for the lock, from 0 to 1
    duration_s: float


class _Moment(Struct, frozen=True, gc=False):
    """The part of one snapshot that the pressure needs."""

    threads: int
    waits_s: Mapping[int, float]  # by lock; locks without waits are left out
    #: Locks with idle waits that may turn out to be contention when more names are known.
    unsettled: frozenset[int]


class PastPressure:
    """Reads the pressure of all locks. ``read()`` blocks; the other methods are for drawing."""

    def __init__(self, moments: Moments) -> None:
        self._moments = moments
        self._pressure_by_time: dict[int, _Moment] = {}  # by time, nanoseconds since 1970
        self._borders: tuple[int, ...] = ()  # times of snapshots, the oldest first

    def is_known(self, until_ns: int) -> bool:
        """Whether the last minute before a moment has been read."""
        return all(time_ns in self._pressure_by_time for time_ns in self._times(until_ns))

    def read(self, until_ns: int) -> None:
        """Read the last minute before a moment, nanoseconds since 1970.

        Raises:
            LocktopError: a snapshot is damaged.
        """
        times = self._times(until_ns)
        moments = {time_ns: self._pressure_by_time.get(time_ns) for time_ns in times}
        self._pressure_by_time = {
            time_ns: moment or _moment(self._moments.snapshot_at(time_ns))
            for time_ns, moment in moments.items()
        }

    def phases(self, snapshot: Snapshot, lock: Lock, until_ns: int) -> tuple[PressurePhase, ...]:
        """Return the phases of the last minute, the oldest first, from what has been read.

        Args:
            snapshot: of the moment.
            lock: of the snapshot.
            until_ns: the moment.
        """
        moments = self._pressure_by_time
        points = [
            _point(time_ns, moments[time_ns], lock.id)
            for time_ns in self._times(until_ns)
            if time_ns in moments
            and time_ns < until_ns
            and lock.id not in moments[time_ns].unsettled
        ]
        last = _moment(snapshot, lock)
        if lock.id not in last.unsettled:
            points.append(_point(until_ns, last, lock.id))
        return tuple(
            PressurePhase(share=pressure(pair, 1)[0], duration_s=pair[1].time_s - pair[0].time_s)
            for pair in pairwise(points)
            if pair[1].time_s - pair[0].time_s >= _MIN_PHASE_S
        )

    def _times(self, until_ns: int) -> Sequence[int]:
        """Return the times of the snapshots at the borders of the phases."""
        times = self._moments.times_ns()
        phase_ns = PHASE_S * _NS
        border_ns = -(-(until_ns - SPAN_S * _NS) // phase_ns) * phase_ns
        chosen: dict[int, None] = {}
        for end_ns in range(border_ns, until_ns, phase_ns):
            index = bisect_right(times, end_ns)
            # The memory may begin within the minute.
            if not index and not chosen:
                index = bisect_left(times, end_ns) + 1
            if 0 < index <= len(times) and times[index - 1] < min(end_ns + phase_ns, until_ns):
                chosen[times[index - 1]] = None
        return [time_ns for time_ns in chosen if time_ns >= until_ns - (SPAN_S + PHASE_S) * _NS]


def _point(time_ns: int, moment: _Moment, lock: int) -> PressurePoint:
    return PressurePoint(time_ns / _NS, moment.waits_s.get(lock, 0.0), moment.threads)


def _moment(snapshot: Snapshot, only: Lock | None = None) -> _Moment:
    locks = snapshot.locks if only is None else (only,)
    return _Moment(
        threads=sum(thread.alive for thread in snapshot.threads),
        waits_s={lock.id: lock.wait_s - lock.idle_s for lock in locks if lock.wait_s},
        unsettled=frozenset({lock.id for lock in locks if lock.idle_s and snapshot.names_left}),
    )
