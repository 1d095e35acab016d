"""The activity of a process in the last two minutes, from a memory or a recording."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from locktop.collector.model import Snapshot, ThreadState
from locktop.collector.recording.moments import Moments

#: A whole share in a byte.
_WHOLE = 255
SPAN_NS = 120_000_000_000
_SECOND_NS = 1_000_000_000


class ActivityPoint(Struct, frozen=True, gc=False):
    """A process at one moment. None: not measured."""

    time_ns: int  # since 1970
    pid: int
    waiting: int | None  # threads that wait in contention
    waits_per_s: float | None  # contended acquisitions a second
    cpus: float | None  # used in the last interval
    longest_s: float | None  # the longest present wait in contention
    #: By id of a lock: its waiting threads, and its contended acquisitions a second. Locks without
    #: either are left out.
    locks: Mapping[int, tuple[int, float | None]] = {}
    #: The living threads, and the shares of their time in contention and on a CPU, 0 to 255. No
    #: threads: the shares are not measured.
    tids: array[int] = array("I")
    wait_shares: bytes = b""
    cpu_shares: bytes = b""

    def waiting_for(self, locks: Iterable[int]) -> int | None:
        """The threads that wait for these locks; None: not measured."""
        if self.waiting is None:
            return None
        return sum(self.locks[id_][0] for id_ in locks if id_ in self.locks)

    def waits_per_s_for(self, locks: Iterable[int]) -> float | None:
        """The contended acquisitions of these locks a second; None: not measured."""
        rates = [self.locks[id_][1] for id_ in locks if id_ in self.locks]
        if self.waits_per_s is None or None in rates:
            return None
        return sum(rate or 0.0 for rate in rates)

    def shares_of(self, tid: int) -> tuple[float, float] | None:
        """The shares of a thread's time in contention and on a CPU; None: not measured."""
        if not self.wait_shares or tid not in self.tids:
            return None
        number = self.tids.index(tid)
        return self.wait_shares[number] / _WHOLE, self.cpu_shares[number] / _WHOLE


class PastActivity:
    """Has the points of the time around a moment, a few hundred at most.

    Add each snapshot that is at hand. ``read()`` gets the others, at most one in each second.
    """

    def __init__(self, moments: Moments | None) -> None:
        """``moments``: the memory or the recording; None: nothing is kept."""
        self._moments = moments
        self._points: dict[int, ActivityPoint] = {}  # by time
        self._pid = 0  # a listener may show one process after the other

    def add(self, snapshot: Snapshot, time_ns: int) -> None:
        """Add the snapshot on the screen; forget what is far from it."""
        self._pid = snapshot.process.pid
        self.add_points([_point(snapshot, time_ns)])
        for far_ns in [key for key in self._points if abs(key - time_ns) > SPAN_NS]:
            del self._points[far_ns]

    def add_points(self, points: Iterable[ActivityPoint]) -> None:
        """Add points that were read."""
        self._points.update((point.time_ns, point) for point in points)

    def points(self, until_ns: int) -> list[ActivityPoint]:
        """Return the points of the two minutes before a moment, the earliest first."""
        times = sorted(key for key in self._points if until_ns - SPAN_NS <= key <= until_ns)
        points = (self._points[time_ns] for time_ns in times)
        return [point for point in points if point.pid == self._pid]

    def missing(self, until_ns: int) -> Sequence[int]:
        """Return the times of the snapshots before a moment that are still to be read."""
        if self._moments is None:
            return ()
        seconds = {time_ns // _SECOND_NS for time_ns in self._points}
        newest = {
            time_ns // _SECOND_NS: time_ns
            for time_ns in self._moments.times_ns()
            if until_ns - SPAN_NS <= time_ns <= until_ns
        }
        return [time_ns for second, time_ns in newest.items() if second not in seconds]

    def read(self, times_ns: Iterable[int]) -> list[ActivityPoint]:
        """Read points, in any thread.

        Raises:
            LocktopError: a snapshot is damaged.
        """
        moments = self._moments
        assert moments is not None
        return [_point(moments.snapshot_at(time_ns), time_ns) for time_ns in times_ns]


def _point(snapshot: Snapshot, time_ns: int) -> ActivityPoint:
    has_waits = snapshot.level != "dormant"
    waits = [
        thread.waiting_for.duration_s if thread.waiting_for is not None else 0.0
        for thread in snapshot.threads
        if thread.state is ThreadState.WAITING
    ]
    rates = [lock.rates.contended for lock in snapshot.locks if not lock.idle]
    has_rates = has_waits and snapshot.interval_s > 0 and None not in rates
    alive = [thread for thread in snapshot.threads if thread.alive and snapshot.interval_s > 0]
    return ActivityPoint(
        time_ns=time_ns,
        pid=snapshot.process.pid,
        waiting=len(waits) if has_waits else None,
        waits_per_s=sum(rate or 0.0 for rate in rates) if has_rates else None,
        cpus=snapshot.process.cpu_share if snapshot.interval_s > 0 else None,
        longest_s=max(waits, default=0.0) if has_waits else None,
        locks={
            lock.id: (len(lock.waiters), lock.rates.contended)
            for lock in snapshot.locks
            if lock.waiters or lock.rates.contended
        },
        tids=array("I", [thread.tid for thread in alive]),
        wait_shares=bytes([_share(thread.wait_share) for thread in alive]) if has_waits else b"",
        cpu_shares=bytes([_share(thread.cpu_share) for thread in alive]),
    )


def _share(share: float) -> int:
    return min(_WHOLE, max(0, round(share * _WHOLE)))
