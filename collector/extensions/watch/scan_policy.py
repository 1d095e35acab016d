"""Decides whether a full scan could find a new deadlock or a new long wait.

A full scan takes several times as long as a reading of the waits. A new deadlock has a wait that
goes on now and was not in the last full scan. Another thread also waits for that thread. The reason
is that the thread holds a lock, wants to write before others read, or must end or arrive. Two cases
are not visible here. One is a semaphore used as a lock by a thread that holds no other lock. The
other is a lock taken before the library counted. The scan at a fixed interval finds these.
"""

from __future__ import annotations

from collections.abc import Mapping

from locktop.collector.model.kinds import BLOCKED_UNLISTED_KINDS, FOR_THREADS_KINDS, TURNS_KINDS
from locktop.collector.sources.base import OngoingWait

#: A scan also shows that the process is stopped or runs another program, so one is due in any case.
_MAX_INTERVAL_S = 10.0

#: Identifies a wait: a tid, its sequence number, the id of its lock, whether it is too long.
_WaitState = tuple[int, int, int, bool]


class ScanPolicy:
    """Decides from one reading of the waits to the next."""

    def __init__(self, wait_s: float | None) -> None:
        """``wait_s``: the limit of a wait, see ``alerts.Alerts``."""
        self._wait_s = wait_s
        self._before: Mapping[int, OngoingWait] = {}
        self._states: frozenset[_WaitState] = frozenset()  # in the last scan
        self._scanned_at = float("-inf")
        #: Whether a due scan needs all names: an idle rule may match a wait that is too long.
        self.needs_names = False

    def due(self, waits: Mapping[int, OngoingWait] | None, now: float) -> bool:
        """Return whether a scan is due. A due scan counts as done.

        Args:
            waits: The present waits by tid; None if only a scan shows them.
            now: The monotonic time in seconds.
        """
        before, self._before = self._before, waits or {}
        ongoing = {
            tid: wait
            for tid, wait in self._before.items()
            if self._too_long(wait) or _goes_on(before.get(tid), wait)
        }
        self.needs_names = any(
            self._too_long(wait)
            and wait.idle is None
            and self._state(tid, wait) not in self._states
            for tid, wait in ongoing.items()
        )
        former, late = self._states, now >= self._scanned_at + _MAX_INTERVAL_S
        self._states = frozenset(self._state(tid, wait) for tid, wait in ongoing.items())
        if waits is not None and not late and not self._needs_scan(ongoing, former):
            self._states &= former  # the waits without a scan are still new
            return False
        self._scanned_at = now
        return True

    def _needs_scan(
        self, ongoing: Mapping[int, OngoingWait], former: frozenset[_WaitState]
    ) -> bool:
        any_may_block = any(
            _is_waited_for(wait) and wait.kind in BLOCKED_UNLISTED_KINDS
            for wait in ongoing.values()
        )
        return any(
            any_may_block
            or _is_waited_for(wait)
            or wait.kind in FOR_THREADS_KINDS
            or self._too_long(wait)
            for tid, wait in ongoing.items()
            if self._state(tid, wait) not in former
        )

    def _state(self, tid: int, wait: OngoingWait) -> _WaitState:
        return tid, wait.seq, wait.lock, self._too_long(wait)

    def _too_long(self, wait: OngoingWait) -> bool:
        limit = self._wait_s
        return limit is not None and wait.idle is not True and wait.duration_s > limit


def _is_waited_for(wait: OngoingWait) -> bool:
    """Return whether other threads may wait for this thread, for a lock or its turn at a lock."""
    return wait.holds or wait.kind in TURNS_KINDS


def _goes_on(before: OngoingWait | None, now: OngoingWait) -> bool:
    return before is not None and (before.seq, before.lock) == (now.seq, now.lock)
