"""Whether a whole look could find a deadlock or a long wait that the looks before did not.

A whole look takes several times as long as reading who waits for what. A new deadlock has a wait
that goes on now and did not in the last whole look, and somebody waits for that thread in turn:
because it holds something, wants to write before others read, or because the end or the arrival of
threads is waited for. What this cannot see (a semaphore used as a lock by a thread that holds
nothing else, a lock taken before the library looked) is found by the look that comes in any case.
"""

from __future__ import annotations

from collections.abc import Mapping

from locktop.collector.model import Kind
from locktop.collector.sources.base import WaitNow

#: Whatever the waits are: a look also sees that the process runs another program, or is stopped.
_AT_LEAST_EACH_S = 10.0
#: Waits for a thread that does not list what it has.
_FOR_THREADS = frozenset({Kind.JOIN, Kind.BARRIER, Kind.ONCE})
_UNLISTED = _FOR_THREADS | {Kind.SEM}

#: A thread's id, the number of its wait, its lock's id, whether it has waited too long.
_Standing = tuple[int, int, int, bool]


class ScanPolicy:
    """Decides from one reading of the waits to the next. ``wait_s``: see Alarms."""

    def __init__(self, wait_s: float | None) -> None:
        self._wait_s = wait_s
        self._before: Mapping[int, WaitNow] = {}
        self._known: frozenset[_Standing] = frozenset()  # in the last look
        self._scanned_at = float("-inf")
        #: Whether a look that is due needs all names: there is a wait that is long, and the rules
        #: may call it one for work.
        self.needs_names = False

    def due(self, waits: Mapping[int, WaitNow] | None, now: float) -> bool:
        """Return whether to look at ``now`` (monotonic, seconds), which then is taken for done.
        ``waits`` None: only a look can tell."""
        before, self._before = self._before, waits or {}
        standing = {
            tid: one
            for tid, one in self._before.items()
            if self._too_long(one) or _goes_on(before.get(tid), one)
        }
        self.needs_names = any(
            self._too_long(one) and one.idle is None and self._mark(tid, one) not in self._known
            for tid, one in standing.items()
        )
        known, late = self._known, now >= self._scanned_at + _AT_LEAST_EACH_S
        self._known = frozenset(self._mark(tid, one) for tid, one in standing.items())
        if waits is not None and not late and not self._matters(standing, known):
            self._known &= known  # what was left aside is new still
            return False
        self._scanned_at = now
        return True

    def _matters(self, standing: Mapping[int, WaitNow], known: frozenset[_Standing]) -> bool:
        through_any = any(
            _is_waited_for(one) and one.kind in _UNLISTED for one in standing.values()
        )
        return any(
            through_any or _is_waited_for(one) or one.kind in _FOR_THREADS or self._too_long(one)
            for tid, one in standing.items()
            if self._mark(tid, one) not in known
        )

    def _mark(self, tid: int, wait: WaitNow) -> _Standing:
        return tid, wait.seq, wait.lock, self._too_long(wait)

    def _too_long(self, wait: WaitNow) -> bool:
        limit = self._wait_s
        return limit is not None and wait.idle is not True and wait.duration_s > limit


def _is_waited_for(one: WaitNow) -> bool:
    """Whether a lock, or a lock's turn, may keep others behind this thread."""
    return one.holds or one.kind is Kind.RWLOCK


def _goes_on(before: WaitNow | None, now: WaitNow) -> bool:
    return before is not None and (before.seq, before.lock) == (now.seq, now.lock)
