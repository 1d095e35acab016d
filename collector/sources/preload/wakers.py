"""The holders of futexes and semaphores that are locks: the threads that woke the waiters.

The library charges each thread that wakes the waiters of a futex with the time that they waited
since the last wake (native account/wake.h). The type of the futex tells whether it is a lock
(``waker=`` in idle.rules), and only then the charges are blame. The same holds for a thread that
posts a semaphore after it took a unit, if the program uses the semaphore as a lock. A thread is
charged at the stack of its wake. The innermost function there that is no part of a library stands
for the stack.

A thread that was the last to get such a lock after a wait, and has woken no waiter since, probably
holds the lock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from msgspec.structs import replace

from locktop.collector.analysis.idle.rules import Waker
from locktop.collector.model import Draft, HolderEvidence, Lock, ProbableHolder, Thread
from locktop.collector.model.frames import innermost_own_frame
from locktop.collector.model.kinds import WOKEN_KINDS
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.layout import LockRow
from locktop.collector.shm.reader import Reading
from locktop.collector.sources.preload.lock_builder import LockBuilder
from locktop.collector.sources.preload.stack_table import StackFrames
from locktop.collector.symbols.resolver import Resolver

#: Seconds. A woken thread may be about to wait once more, because another one was faster.
_MIN_HOLD_S = 0.1


class Wakers:
    """Adds these holders to the locks of one process, scan after scan."""

    def __init__(
        self, clock: Clock, locks: LockBuilder, frames: StackFrames, resolver: Resolver
    ) -> None:
        self._clock = clock
        self._locks = locks
        self._frames = frames
        self._resolver = resolver
        self._sites: dict[int, int] = {}  # by stack, once no further name can change it

    def request_names(self, draft: Draft, reading: Reading, waker: Callable[[str], Waker]) -> bool:
        """Request the names of the functions that woke waiters.

        Returns:
            whether a futex is such a lock.
        """
        locks = _woken_locks(draft, waker)
        stacks = {
            charge.stack
            for lock in locks
            if (charges := reading.charges.get(lock)) is not None
            for charge in charges.by_stack
        }
        for stack in stacks - self._sites.keys():
            self._frames.frames(stack)
        return bool(locks)

    def annotate(
        self,
        draft: Draft,
        reading: Reading,
        rows: Mapping[int, LockRow],
        waker: Callable[[str], Waker],
    ) -> None:
        """Fill in the blame, hold times and probable holders of the futexes that are locks.

        Args:
            draft: the draft, with the types of futexes.
            reading: the reading that the draft was built from.
            rows: its locks by id.
            waker: returns the waker of a type.
        """
        wakers = _woken_locks(draft, waker)
        threads = {thread.tid: thread for thread in draft.threads}
        complete = partial(self._complete, threads, reading, rows)
        draft.locks = tuple([
            complete(lock, wakers[lock.id]) if lock.id in wakers else lock for lock in draft.locks
        ])  # fmt: skip

    def _complete(
        self,
        threads: Mapping[int, Thread],
        reading: Reading,
        rows: Mapping[int, LockRow],
        lock: Lock,
        waker: Waker,
    ) -> Lock:
        is_every = waker is Waker.EVERY_HOLDER
        blamed = self._locks.add_wakers(lock, reading, self._site_of, is_every)
        row = rows.get(lock.id)
        if not is_every or row is None or not lock.waiters or lock.holders:
            return blamed
        holder = threads.get(row.woken_tid)
        if holder is None or not self._holds(holder, lock, threads, reading.now - row.woken_at):
            return blamed
        probable = ProbableHolder(tid=holder.tid, evidence=HolderEvidence.WAKER, site=0)
        return replace(blamed, holders_probable=(probable,))

    def _holds(
        self, holder: Thread, lock: Lock, threads: Mapping[int, Thread], held_ticks: int
    ) -> bool:
        """Return whether the thread that got the lock last has kept it, as far as is relation."""
        if not holder.alive or holder.tid in lock.waiters:
            return False
        waits = [
            wait.duration_s
            for tid in lock.waiters
            if tid in threads and (wait := threads[tid].waiting_for) is not None
        ]
        return min(max(waits, default=0.0), self._clock.seconds(held_ticks)) >= _MIN_HOLD_S

    def _site_of(self, stack: int) -> int:
        """Return the address that stands for a stack; 0 while it is not relation."""
        site = self._sites.get(stack)
        if site is None:
            frame = innermost_own_frame(self._frames.frames(stack))
            if frame is None or not self._resolver.is_final(frame):
                return 0
            site = self._sites[stack] = frame.address
        return site


def _woken_locks(draft: Draft, waker: Callable[[str], Waker]) -> dict[int, Waker]:
    """Return by id the wakers of the futexes and semaphores that are locks."""
    return {
        lock.id: relation
        for lock in draft.locks
        if lock.kind in WOKEN_KINDS
        and (relation := Waker.HOLDER if lock.used_as_lock else waker(lock.type))
    }
