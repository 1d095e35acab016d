"""What is asked only of threads that somebody looks at closely: it costs some 20 us each."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from locktop.collector.counters import ThreadCounters
from locktop.collector.model import Counters, Switches, Thread
from locktop.collector.tasks import Tasks

#: Of all threads, those that used most processor time.
_MOST_ASKED = 1024
_NONE = (0, 0)


class CloserLook:
    """Follows one thread of a process at a time."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._wanted = 0  # tid; set by another thread
        self._which = _NONE  # tid, when it began: ids are used again
        self._counters: ThreadCounters | None = None

    def follow(self, tid: int) -> None:
        """Follow a thread from the next look on; 0: none."""
        self._wanted = tid

    def told(self, threads: Sequence[Thread], all_of_them: bool) -> tuple[Thread, ...]:
        """Return the threads: the one that is followed with its switches and counters, with
        ``all_of_them`` the others with their switches too."""
        wanted = self._wanted
        asked = {wanted} if wanted else set()
        if all_of_them:
            alive = (thread for thread in threads if thread.alive)
            busiest = heapq.nlargest(_MOST_ASKED, alive, key=lambda thread: thread.cpu_s)
            asked.update(thread.tid for thread in busiest)
        counters = self._counted(wanted)
        if not asked:
            return tuple(threads)
        return tuple(
            thread._replace(
                switches=self._switches(thread.tid),
                counters=counters if thread.tid == wanted else None,
            )
            if thread.tid in asked and thread.alive
            else thread
            for thread in threads
        )

    def _counted(self, tid: int) -> Counters | None:
        try:
            which = (tid, self._tasks.began(tid)) if tid else _NONE
            if which != self._which:
                self.close()
                self._which = which
                self._counters = ThreadCounters(self._tasks.kernel_tid(tid)) if tid else None
        except OSError:
            self.close()  # it has ended
        return self._counters.read() if self._counters is not None else None

    def _switches(self, tid: int) -> Switches | None:
        try:
            return self._tasks.switches(tid)
        except OSError:
            return None  # it has ended

    def close(self) -> None:
        """Count no longer."""
        if self._counters is not None:
            self._counters.close()
        self._which, self._counters = _NONE, None
