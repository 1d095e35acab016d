"""Owners of locks in shared memory that are threads of other processes.

The word of such a lock names a thread by its id alone. The owner may have ended, and a later thread
may have its id. So locktop names a process only if the process has mapped the same memory. Ids of
several pid namespaces cannot be told apart.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

from msgspec.structs import replace

from locktop.collector.linux import futex, procfs, syscalls
from locktop.collector.model import Draft, Lock, ThreadElsewhere, Wait
from locktop.collector.sources.probes import shared_memory, shared_mutexes
from locktop.collector.sources.probes.shared_mutexes import MutexWord
from locktop.collector.symbols import memory_map
from locktop.collector.symbols.memory_map import AddressSpace
from locktop.collector.symbols.memory_map import Mapping as MemoryMapping

#: Seconds: only a lasting wait justifies a search through other processes.
_LASTING_S = 0.5
#: Seconds until an owner that was not found is searched again.
_AGAIN_S = 10.0
#: A bound, because many locks may have owners elsewhere.
_MAX_LOCKS = 8


class _FoundOwner(NamedTuple):
    """The result of a search."""

    thread: ThreadElsewhere
    kernel_tid: int  # 0: not known
    start_time: int  # of the thread: a later thread may have its id
    searched_at: float  # time.monotonic()


class OwnersElsewhere:
    """Finds the threads of other processes for which threads of one process wait."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        #: By address of the mutex, and tid.
        self._owner_cache: dict[tuple[int, int], _FoundOwner] = {}
        #: The futex calls of the owners in the last scan, by process and thread.
        self._calls: dict[tuple[int, int], bytes] = {}

    def annotate(self, draft: Draft) -> None:
        """Fill in these threads, also as holders of their mutexes."""
        locks = shared_mutexes.waited_for(draft.threads, draft.locks, _lasts)[:_MAX_LOCKS]
        before, self._calls = self._calls, {}
        if not locks:
            return
        try:
            owners = self._owners(locks, {thread.tid for thread in draft.threads}, before)
        except (OSError, ValueError):
            return  # the process has ended, or locktop may not read its memory
        by_tid = {owner.tid: owner for owner in owners.values()}
        draft.threads_elsewhere = tuple(by_tid[tid] for tid in sorted(by_tid))
        holders = {lock: (owner.tid,) for lock, owner in owners.items()}
        draft.locks = tuple(
            replace(lock, holders=holders[lock.id]) if lock.id in holders else lock
            for lock in draft.locks
        )
        draft.threads = tuple(
            replace(thread, waiting_for=replace(wait, holders=holders[wait.lock]))
            if (wait := thread.waiting_for) is not None and wait.lock in holders
            else thread
            for thread in draft.threads
        )

    def _owners(
        self, locks: Sequence[Lock], own: Set[int], before: Mapping[tuple[int, int], bytes]
    ) -> dict[int, ThreadElsewhere]:
        """Return by lock id the owner that is no thread of this process.

        Args:
            locks: the mutexes.
            own: the threads of this process.
            before: the futex calls of the owners in the scan before.
        """
        addresses = [lock.address for lock in locks]
        words = {
            address: word
            for address, word in shared_mutexes.words(self._pid, addresses).items()
            if word.owner and word.owner not in own
        }
        if not words:
            return {}
        space = AddressSpace(memory_map.parse(procfs.maps(self._pid)))
        owners = {
            lock.id: owner
            for lock in locks
            if lock.address in words
            and (owner := self._owner(lock.address, words[lock.address], space, before)) is not None
        }
        # The search takes a while. An owner that has released the mutex meanwhile holds nothing.
        again = shared_mutexes.words(self._pid, words)
        same = {lock.id for lock in locks if again.get(lock.address) == words.get(lock.address)}
        return {lock: owner for lock, owner in owners.items() if lock in same}

    def _owner(
        self,
        address: int,
        word: MutexWord,
        space: AddressSpace,
        before: Mapping[tuple[int, int], bytes],
    ) -> ThreadElsewhere | None:
        """Return an owner; None if no other process can have the mutex."""
        mapping = space.find(address)
        if mapping is None or not mapping.shared:
            return None
        now = time.monotonic()
        owner = self._owner_cache.get((address, word.owner))
        if owner is None or not _holds_good(owner, now):
            if len(self._owner_cache) >= _MAX_LOCKS:
                self._owner_cache.clear()
            offset = mapping.offset + address - mapping.start
            searched = self._search(mapping, offset, word.owner)
            if searched is None:
                return None
            owner = searched
            self._owner_cache[address, word.owner] = owner
        thread = owner.thread.pid, owner.kernel_tid
        call = _futex_call(*thread) if owner.kernel_tid else b""
        self._calls[thread] = call
        # Two scans must show the same wait: short ones are usual.
        waits = bool(call) and before.get(thread) == call
        return replace(owner.thread, is_freed_at_exit=word.is_freed_at_exit, waits=waits)

    def _search(self, mapping: MemoryMapping, offset: int, tid: int) -> _FoundOwner | None:
        """Return the owner of a mutex at an offset of a mapped file; None if it has ended."""
        now = time.monotonic()
        unknown = _FoundOwner(ThreadElsewhere(tid=tid), 0, 0, now)
        try:
            thread = shared_memory.find_thread(self._pid, tid)
            if thread is None and shared_memory.sees_all_threads_of(self._pid):
                return None
            if thread is None or not shared_memory.are_in_one_namespace(self._pid, mapping):
                return unknown
            pid, kernel_tid = thread
            if pid == self._pid:
                return None  # the thread is so new that this scan does not have it
            stat = procfs.thread_stat(pid, kernel_tid)
            try:
                if not shared_memory.shares(pid, mapping, offset):
                    return unknown
            except PermissionError:
                return unknown._replace(thread=ThreadElsewhere(tid=tid, pid=pid))
            name = "" if kernel_tid == pid else stat.comm
            named = ThreadElsewhere(tid=tid, pid=pid, comm=procfs.stat(pid).comm, name=name)
        except (OSError, ValueError):
            return unknown  # the owner has ended meanwhile
        return _FoundOwner(named, kernel_tid, stat.start_time, now)


def _lasts(wait: Wait) -> bool:
    return wait.duration_s >= _LASTING_S or wait.is_lower_bound


def _futex_call(pid: int, tid: int) -> bytes:
    """Return the futex call in which a thread waits without a time limit; b"" if it is in none."""
    try:
        data = procfs.thread_syscall(pid, tid)
        call = syscalls.parse(data)
        wait = futex.parse_wait(pid, call) if call is not None else None
    except (OSError, ValueError):
        return b""  # the thread has ended, or locktop may not read its calls
    return data if wait is not None and not wait.timed else b""


def _holds_good(owner: _FoundOwner, now: float) -> bool:
    """Return whether the result of an earlier search is still right."""
    if not owner.kernel_tid:
        return now - owner.searched_at < _AGAIN_S
    try:
        stat = procfs.thread_stat(owner.thread.pid, owner.kernel_tid)
    except (OSError, ValueError):
        return False
    return stat.start_time == owner.start_time
