"""The verdicts of the idle rules from scans with all names, so that wait_poll.py can use them."""

from __future__ import annotations

from collections.abc import Iterator

from locktop.collector.model import Snapshot, Wait
from locktop.collector.sources.probes.python_stacks import FIRST_ID

#: A lock's id, the id of the native stack, the return address of the waiting call.
_Key = tuple[int, int, int]
MAX_KEPT = 1 << 16


class IdleCache:
    """The verdicts by lock and call site.

    There is no verdict for a call site whose waits differ by thread or by Python function.
    """

    def __init__(self) -> None:
        self._idle: dict[_Key, bool] = {}

    def learn(self, snapshot: Snapshot, named: bool) -> None:
        """Learn the verdicts of a snapshot.

        A known verdict follows every later scan, because only time shows whether a semaphore is a
        lock.

        Args:
            snapshot: the snapshot.
            named: whether all names are known in the snapshot.
        """
        if len(self._idle) > MAX_KEPT:
            self._idle.clear()
        if not named and not self._idle:
            return
        verdicts_by_key: dict[_Key, set[bool]] = {}
        # Thousands of waits have a few hundred call sites.
        distinct = {
            (wait.lock, wait.stack, wait.site, wait.idle) for wait in _cacheable_waits(snapshot)
        }
        for lock, stack, site, idle in distinct:
            verdicts_by_key.setdefault((lock, stack, site), set()).add(idle)
        for key, verdicts in verdicts_by_key.items():
            if len(verdicts) > 1:
                self._idle.pop(key, None)
            elif named or key in self._idle:
                self._idle[key] = verdicts.pop()

    def idle(self, lock: int, stack: int, site: int) -> bool | None:
        """Return whether such a wait is for work; None if only a scan with all names knows."""
        return self._idle.get((lock, stack, site))


def _cacheable_waits(snapshot: Snapshot) -> Iterator[Wait]:
    """Yield the waits that rules of their stack classified: not deadlocks, not Python functions."""
    stuck = {edge.tid for deadlock in snapshot.deadlocks for edge in deadlock.cycle}
    stuck.update(tid for deadlock in snapshot.deadlocks for tid in deadlock.stuck)
    stuck.update(snapshot.hang.tids if snapshot.hang is not None else ())
    for thread in snapshot.threads:
        wait = thread.waiting_for
        if wait is not None and thread.tid not in stuck and wait.stack < FIRST_ID:
            yield wait
