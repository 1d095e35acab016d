"""Children that keep the watched process, for a process that has no wait for a lock.

``locktop run -- sh -c './prog | cat'`` watches the shell. The threads that wait are those of prog.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress

from locktop.collector.linux import procfs
from locktop.collector.linux.sleep_clock import SleepClock
from locktop.collector.model import ChildWaits, Draft, ThreadState
from locktop.collector.sources.sampling import awaited_child
from locktop.collector.sources.sampling.glance import Sleep, glance

#: Seconds between two searches: each reads the stat of all processes.
_EVERY_S = 5.0
#: Seconds. A shorter wait is no reason to watch another process.
_MIN_S = 1.0
#: Children that are looked at in one search, those with the most threads first.
_MAX_GLANCES = 4


class ChildWaitsProbe:
    """Looks at the children of one process, and at their children, now and then."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._clock = SleepClock()
        self._searched_at = float("-inf")
        self._waits: tuple[ChildWaits, ...] = ()
        self._sleeps: dict[int, Mapping[int, Sleep]] = {}  # by pid, at the last search

    def annotate(self, draft: Draft) -> None:
        """Fill in the children whose threads wait, unless the process itself has a wait."""
        if any(thread.state is ThreadState.WAITING for thread in draft.threads) or draft.hang:
            self._searched_at, self._waits = float("-inf"), ()
            return
        with suppress(OSError, ValueError):  # the process has ended
            draft.awaited_child = awaited_child.find(self._pid)
        if time.monotonic() >= self._searched_at + _EVERY_S:
            self._searched_at = time.monotonic()
            self._waits = self._search()
        draft.waiting_children = self._waits

    def _search(self) -> tuple[ChildWaits, ...]:
        before, self._sleeps = self._sleeps, {}
        children = _descendants(self._pid)
        waits = []
        for pid in sorted(children, key=lambda pid: -children[pid].threads)[:_MAX_GLANCES]:
            seen = glance(pid, self._clock)
            if seen is None or not seen.for_locks:
                continue
            self._sleeps[pid] = seen.for_locks
            lasts = seen.for_locks.items() & before.get(pid, {}).items()
            if seen.longest_s >= _MIN_S or lasts:
                waits.append(
                    ChildWaits(
                        pid=pid,
                        comm=children[pid].comm,
                        waiting=len(seen.for_locks),
                        longest_s=max(seen.longest_s, _EVERY_S if lasts else 0.0),
                    )
                )
        return tuple(sorted(waits, key=lambda child: (-child.longest_s, child.pid)))


def _descendants(pid: int) -> dict[int, procfs.TaskStat]:
    """Return the children of a process, and their children, without locktop itself."""
    stats: dict[int, procfs.TaskStat] = {}
    for other in procfs.pids():
        with suppress(OSError, ValueError):  # it has ended
            stats[other] = procfs.stat(other)
    below, newest = dict[int, procfs.TaskStat](), {pid}
    while newest:
        newest = {
            child for child, stat in stats.items() if stat.parent in newest and child not in below
        }
        newest -= {os.getpid(), pid}
        below |= {child: stats[child] for child in newest}
    return below
