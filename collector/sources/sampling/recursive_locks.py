"""The RLocks of Python that threads of a sampled process wait for, and their owners.

An RLock consists of a semaphore, or of a PyMutex, and of its owner. A thread sets the owner after
it got the lock, and clears it before it releases the lock (Modules/_threadmodule.c). So the owner
is exact. A waiter has the address of the RLock on its stack.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Set

from locktop.collector.linux.syscalls import SystemCall
from locktop.collector.model.kinds import NAMED_BY_STACK_KINDS
from locktop.collector.sources.probes.python_lock_reader import PythonLockReader
from locktop.collector.sources.sampling.sampled_wait import SampledWait
from locktop.collector.symbols.python.lock_objects import LockObject

#: A shorter wait is likely to end before its owner is known.
_MIN_WAIT_S = 0.1
_MAX_KEPT = 4096  # sleeps that were read

_Sleep = tuple[int, int]  # life of the thread, number of the sleep


class RecursiveLocks:
    """The RLocks of one process."""

    def __init__(self, reader: PythonLockReader) -> None:
        self._reader = reader
        self._locks: dict[int, LockObject] = {}  # by the address at which a thread waits
        self._words: dict[_Sleep, int] = {}  # 0, or the address at which the thread waits

    def find(
        self,
        waits: Iterable[SampledWait],
        calls: Mapping[int, SystemCall | None],
        now: float,
        first_at: float,
        budget_s: float,
    ) -> bool:
        """Find the RLocks of waits that last; return whether there is a new one.

        Args:
            waits: the waits of the last sample.
            calls: the system calls of the threads, by tid.
            now: when the sample was taken, time.monotonic().
            first_at: when the first sample was taken: waits of that sample began before.
            budget_s: seconds for new waits; the next scan reads the remaining ones.
        """
        lasting = [
            wait
            for wait in waits
            if wait.sync_object.kind in NAMED_BY_STACK_KINDS
            and (now - wait.since >= _MIN_WAIT_S or wait.since <= first_at)
        ]
        locks = self._reader.locks() if lasting else None
        if locks is None:
            self._locks, self._words = {}, {}
            return False
        locks.begin()
        before, self._words = self._words, {}
        until, has_new = time.monotonic() + budget_s, False
        words: set[int] = set()
        for wait in lasting[:_MAX_KEPT]:
            sleep, word = (wait.life, wait.seq), wait.futex.address
            if sleep not in before:
                call = calls.get(wait.tid)
                if call is None or time.monotonic() > until:
                    continue
                lock = self._reader.waited_for(word, call.sp)
                is_owned = lock is not None and lock.owned
                before[sleep] = word if is_owned else 0
                if lock is not None and is_owned:
                    self._locks[word], has_new = lock, True
            self._words[sleep] = before[sleep]
            words.add(before[sleep])
        self._locks = {word: lock for word, lock in self._locks.items() if word in words}
        return has_new

    @property
    def words(self) -> Set[int]:
        """The addresses at which threads wait for RLocks."""
        return self._locks.keys()

    def owner(self, word: int) -> int | None:
        """Return the tid of the owner of an RLock at this moment, 0 if it has none.

        Args:
            word: the address at which threads wait; the result is None if that is not for an RLock.
        """
        lock, locks = self._locks.get(word), self._reader.locks()
        if lock is None or locks is None:
            return None
        return locks.owner(lock) if locks.is_lock_of(lock, word) else 0
