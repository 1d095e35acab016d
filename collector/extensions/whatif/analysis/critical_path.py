"""The critical path of a recorded span: the chain of work that the last thread waited for.

The path goes back from the end of the span. In a thread's own time the path stays in the thread. A
release ends each wait, and there the path goes to the thread that released the lock. Profilers such
as wPerf (Zhou, OSDI 2018) follow the same edges.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from locktop.collector.extensions.whatif.analysis.boundaries import At, Boundary
from locktop.collector.model.kinds import HELD_KINDS

#: Hand-overs that are followed.
_MAX_EDGES = 100_000


class _Release(NamedTuple):
    time_ns: int
    tid: int


def path_shares(
    boundaries: Mapping[int, Sequence[Boundary]], from_ns: int, to_ns: int
) -> dict[int, float]:
    """Return the share of the path that lies in holds of each lock, by id.

    Args:
        boundaries: of all threads, by tid.
        from_ns: where the path ends.
        to_ns: where the path begins.
    """
    walk = _PathWalk(boundaries, from_ns)
    tid = max(boundaries, key=lambda candidate: boundaries[candidate][-1].time_ns, default=None)
    if tid is None or to_ns <= from_ns:
        return {}
    walk.follow(tid, min(to_ns, boundaries[tid][-1].time_ns))
    return {lock: held_ns / (to_ns - from_ns) for lock, held_ns in walk.held_ns.items()}


class _PathWalk:
    def __init__(self, boundaries: Mapping[int, Sequence[Boundary]], from_ns: int) -> None:
        self._boundaries = boundaries
        self._from_ns = from_ns
        self._times = {
            tid: [boundary.time_ns for boundary in of_thread]
            for tid, of_thread in boundaries.items()
        }
        self._releases: dict[int, list[_Release]] = {}  # by lock
        for tid, of_thread in boundaries.items():
            for boundary in of_thread:
                if boundary.at in (At.RELEASED, At.SIGNALLED):
                    self._releases.setdefault(boundary.lock, []).append(
                        _Release(boundary.time_ns, tid)
                    )
        for releases in self._releases.values():
            releases.sort()
        self.held_ns: dict[int, int] = {}  # by lock

    def follow(self, tid: int, time_ns: int) -> None:
        """Go back from a moment of a thread, and add up the holds on the way."""
        for _ in range(_MAX_EDGES):
            of_thread = self._boundaries[tid]
            number = bisect_right(self._times[tid], time_ns) - 1
            wait = self._wait_before(of_thread, number)
            begin_ns = of_thread[wait].time_ns if wait >= 0 else self._from_ns
            self._add(of_thread, tid, max(begin_ns, self._from_ns), time_ns)
            if wait < 1 or begin_ns <= self._from_ns:
                return
            release = self._release_before(of_thread[wait])
            if release is None or release.time_ns <= of_thread[wait - 1].time_ns:
                time_ns = of_thread[wait - 1].time_ns  # nobody is known who ended the wait
            else:
                tid, time_ns = release.tid, release.time_ns
            if time_ns <= self._from_ns:
                return

    @staticmethod
    def _wait_before(of_thread: Sequence[Boundary], number: int) -> int:
        """Return the index of the last end of a wait up to ``number``; -1: there is none."""
        while number >= 1:
            if of_thread[number].at is At.GOT and of_thread[number - 1].at is At.REQUESTED:
                return number
            number -= 1
        return -1

    def _release_before(self, got: Boundary) -> _Release | None:
        releases = self._releases.get(got.lock, [])
        number = bisect_left(releases, _Release(got.time_ns, 0))
        return releases[number - 1] if number else None

    def _add(self, of_thread: Sequence[Boundary], tid: int, from_ns: int, to_ns: int) -> None:
        """Add the holds of a thread between two moments."""
        begin = bisect_left(self._times[tid], from_ns)
        end = bisect_right(self._times[tid], to_ns)
        taken: dict[int, int] = {}
        for boundary in of_thread[begin:end]:
            if boundary.at is At.GOT and boundary.kind in HELD_KINDS:
                taken[boundary.lock] = boundary.time_ns
            elif boundary.at is At.RELEASED:
                since_ns = taken.pop(boundary.lock, from_ns)
                self._add_hold(boundary.lock, boundary.time_ns - since_ns)
        for lock, since_ns in taken.items():
            self._add_hold(lock, to_ns - since_ns)

    def _add_hold(self, lock: int, held_ns: int) -> None:
        self.held_ns[lock] = self.held_ns.get(lock, 0) + held_ns
