"""The waits of this moment, from one copy of the threads' blocks: far cheaper than a scan.

One copy alone proves nothing, because the copy is not taken at one moment. The copy only shows
whether a scan, which does prove waits, is worth its time.
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
from locktop.collector.sources.base import OngoingWait
from locktop.collector.sources.preload.idle_cache import IdleCache

_LIVING = frozenset({lib.LT_THREAD_LIVE, lib.LT_THREAD_EXITING})


class _WaitingThread(NamedTuple):
    """The used fields of struct lt_thread, beside the wait."""

    state: int
    tid: int
    birth: int
    held_top: int


_WAITING = native.Record(_WaitingThread, "struct lt_thread")


def read(threads: GrowingArray, clock: Clock, idle_cache: IdleCache) -> dict[int, OngoingWait]:
    """Return the waits by tid.

    Raises:
        LocktopError: the file is damaged.
    """
    threads.refresh()
    data, now = threads.copy(), clock.now()
    serials: dict[int, int] = {}
    waits: dict[int, OngoingWait] = {}
    for thread, wait in _waiting_threads(data):
        kind = kind_of(wait.key)
        # If two blocks have one tid, the thread of the older block is dead.
        if kind is not None and serials.get(thread.tid, -1) < thread.birth:
            serials[thread.tid] = thread.birth
            waits[thread.tid] = OngoingWait(
                lock=wait.lock,
                kind=kind,
                duration_s=clock.seconds(now - wait.since),
                seq=wait.seq,
                holds=bool(thread.held_top),
                idle=idle_cache.idle(wait.lock, wait.stack, wait.site),
            )
    return waits


def _waiting_threads(data: memoryview) -> Iterator[tuple[_WaitingThread, WaitBlock]]:
    """Yield each living thread that is in a wait, with the wait."""
    for offset in range(0, len(data), layout.THREAD.size):
        wait = layout.WAIT.unpack(data, offset + layout.WAIT_AT)
        if wait.key and not wait.seq & 1:
            thread = _WAITING.unpack(data, offset)
            if thread.tid and thread.state in _LIVING:
                yield thread, wait
