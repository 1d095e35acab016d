"""Who waits for what at this moment, from one copy of the threads' blocks: a fraction of a look.

One copy alone proves nothing, for it is not taken at one moment. It tells whether a look, which
does prove, is worth its time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from locktop.collector import native
from locktop.collector.native import lib
from locktop.collector.shm import layout
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.kinds import kind_of
from locktop.collector.shm.layout import WaitBlock
from locktop.collector.shm.segment import GrowingArray
from locktop.collector.sources.base import WaitNow
from locktop.collector.sources.preload.idle_cache import IdleCache

_LIVING = frozenset({lib.LT_THREAD_LIVE, lib.LT_THREAD_EXITING})


class _Waiting(NamedTuple):
    """What is used of struct lt_thread beside its wait."""

    state: int
    tid: int
    birth: int
    held_top: int


_WAITING = native.Record(_Waiting, "struct lt_thread")


def read(threads: GrowingArray, clock: Clock, idle_cache: IdleCache) -> dict[int, WaitNow]:
    """Return the waits by tid. Raises LocktopError for a damaged file."""
    threads.refresh()
    data, now = threads.copy(), clock.now()
    births: dict[int, int] = {}
    waits: dict[int, WaitNow] = {}
    for thread, wait in _waiting(data):
        kind = kind_of(wait.key)
        # Of two blocks with one tid the older one's thread is dead.
        if kind is not None and births.get(thread.tid, -1) < thread.birth:
            births[thread.tid] = thread.birth
            waits[thread.tid] = WaitNow(
                wait.lock,
                kind,
                clock.seconds(now - wait.since),
                wait.seq,
                bool(thread.held_top),
                idle_cache.idle(wait.lock, wait.stack, wait.site),
            )
    return waits


def _waiting(data: memoryview) -> Iterator[tuple[_Waiting, WaitBlock]]:
    """Each living thread that is in a wait, with that."""
    for at in range(0, len(data), layout.THREAD.size):
        wait = layout.WAIT.at(data, at + layout.WAIT_AT)
        if wait.key and not wait.seq & 1:
            thread = _WAITING.at(data, at)
            if thread.tid and thread.state in _LIVING:
                yield thread, wait
