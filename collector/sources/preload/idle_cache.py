"""What the rules made of waits when all names were known, so that a reading of the waits alone can
be told apart without a look."""

from __future__ import annotations

from collections.abc import Iterator

from locktop.collector.model import Snapshot, Wait
from locktop.collector.sources.probes.python_stacks import FIRST_ID

#: A lock's id, the id of the native stack, the return address of the waiting call.
_Key = tuple[int, int, int]
_MAX_KEPT = 1 << 16


class IdleCache:
    """The verdicts, by lock and place. Where waits at one place are told apart by something else
    (their thread, what Python runs), there is none."""

    def __init__(self) -> None:
        self._idle: dict[_Key, bool] = {}

    def learn(self, snapshot: Snapshot, named: bool) -> None:
        """Take over what ``snapshot`` tells; ``named``: all names are known in it. What is known
        already follows what any look tells: whether a semaphore is a lock shows in time."""
        if len(self._idle) > _MAX_KEPT:
            self._idle.clear()
        seen: dict[_Key, set[bool]] = {}
        for wait in _ruled(snapshot):
            seen.setdefault((wait.lock, wait.stack, wait.site), set()).add(wait.idle)
        for key, verdicts in seen.items():
            if len(verdicts) > 1:
                self._idle.pop(key, None)
            elif named or key in self._idle:
                self._idle[key] = verdicts.pop()

    def idle(self, lock: int, stack: int, site: int) -> bool | None:
        """Return whether such a wait is for work, None if only a look with all names tells."""
        return self._idle.get((lock, stack, site))


def _ruled(snapshot: Snapshot) -> Iterator[Wait]:
    """The waits told by rules of their stack: not because of a deadlock, nor by what Python ran."""
    stuck = {edge.tid for found in snapshot.deadlocks for edge in found.cycle}
    stuck.update(tid for found in snapshot.deadlocks for tid in found.stuck)
    for thread in snapshot.threads:
        wait = thread.waiting_for
        if wait is not None and thread.tid not in stuck and wait.stack < FIRST_ID:
            yield wait
