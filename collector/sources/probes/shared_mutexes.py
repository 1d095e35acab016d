"""Mutexes in shared memory: which threads wait for one, and whom its memory names as the owner."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from locktop.collector.linux import process_memory
from locktop.collector.model import Kind, Lock, Thread, Wait

#: lock, count, owner, users and kind of a pthread_mutex_t (struct_mutex.h).
_MUTEX = struct.Struct("=IIIIi")
_FREED_AT_EXIT = 16 | 32  # of the kind: robust, priority inheritance
_TID_MASK = 0x3FFFFFFF  # FUTEX_TID_MASK: the word of these mutexes
_TAKEN = 2  # the word of other mutexes: taken, and threads wait


class MutexWord(NamedTuple):
    """The owner, as the memory of a mutex says it."""

    owner: int  # tid, 0: none
    is_freed_at_exit: bool
    is_contended: bool  # a mutex that is freed at the exit does not say so


def waited_for(
    threads: Iterable[Thread], locks: Iterable[Lock], counts: Callable[[Wait], bool]
) -> list[Lock]:
    """Return the mutexes that processes share and that threads wait for.

    Args:
        threads: of the process.
        locks: of the process.
        counts: whether a wait counts.
    """
    wanted = {
        wait.lock
        for thread in threads
        if (wait := thread.waiting_for) is not None
        and wait.pshared
        and wait.kind is Kind.MUTEX
        and counts(wait)
    }
    return [lock for lock in locks if lock.id in wanted]


def words(pid: int, addresses: Collection[int]) -> dict[int, MutexWord]:
    """Return by address what the memory of each mutex says.

    Raises:
        OSError: the memory may not be read.
    """
    read = process_memory.read_many(pid, [(address, _MUTEX.size) for address in addresses])
    return {
        address: _parse(data)
        for address, data in zip(addresses, read, strict=True)
        if len(data) == _MUTEX.size
    }


def _parse(data: bytes) -> MutexWord:
    lock, _, owner, _, kind = _MUTEX.unpack(data)
    freed = bool(kind & _FREED_AT_EXIT)
    return MutexWord(lock & _TID_MASK if freed else owner, freed, not freed and lock == _TAKEN)
