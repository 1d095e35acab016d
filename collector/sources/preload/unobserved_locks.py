"""The locks of waits that the library does not observe, read from the memory of the process.

A sampled process shows its locks in the same way (sampling/nptl_objects.py). So with the library
nothing is less visible than without it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property, partial

from msgspec import Struct
from msgspec.structs import replace

from locktop.collector.linux import process_memory
from locktop.collector.linux.futex import FutexWait
from locktop.collector.model import (
    CONTENTION_KINDS,
    WAITS_ALONE,
    Draft,
    Held,
    Kind,
    Lock,
    Thread,
    Wait,
    WaitStack,
)
from locktop.collector.sources.probes.native_stacks import NativeStacks
from locktop.collector.sources.sampling import nptl_objects
from locktop.collector.sources.sampling.libc_info import CLibrary
from locktop.collector.sources.sampling.nptl_objects import AFTER, BEFORE, SyncObject
from locktop.collector.symbols.lock_naming import LockIdentity, LockNames, LockStacks
from locktop.collector.symbols.resolver import Resolver

#: Ids of these locks begin here: the library's ids are smaller, and addresses have 47 bits.
_FIRST_ID = 1 << 52


class KernelWait(Struct, frozen=True, gc=False):
    """A sleep in a futex call that the library does not observe."""

    tid: int
    runs: int  # how often the kernel had put the thread on a CPU before
    futex: FutexWait
    since: float  # the latest moment at which it may have begun: time.monotonic()
    stack: int = 0  # id, 0 unknown


class UnobservedLocks:
    """Gives the threads in unobserved waits the locks that they wait for."""

    def __init__(self, pid: int, resolver: Resolver, stacks: NativeStacks) -> None:
        self._pid = pid
        self._names = LockNames(resolver, generations=False)
        self._stacks = stacks
        self._objects: dict[int, SyncObject] = {}  # by lock id, of the last scan

    @cached_property
    def _libc(self) -> CLibrary:
        return CLibrary(self._pid)

    def objects(
        self, waits: Collection[KernelWait], tids: Collection[int]
    ) -> dict[int, SyncObject]:
        """Return by tid the object of each wait, of Kind.FUTEX if it is unknown.

        Args:
            waits: of this moment.
            tids: the threads of the process.
        """
        pieces = [(wait.futex.address - BEFORE, BEFORE + AFTER) for wait in waits]
        objects = {}
        for wait, context in zip(waits, process_memory.read_many(self._pid, pieces), strict=True):
            recognised = nptl_objects.recognise(
                wait.futex, context, tids, self._libc.version, may_wait_at=self._libc.may_wait_at
            )
            objects[wait.tid] = recognised or SyncObject(
                kind=Kind.FUTEX, address=wait.futex.address, shared=not wait.futex.private
            )
        return objects

    def annotate(self, draft: Draft, waits: Sequence[KernelWait], now: float) -> None:
        """Fill in the waits of these threads, and their locks.

        Args:
            draft: has the threads and locks that the library knows.
            waits: the unobserved waits of this scan.
            now: time.monotonic().
        """
        self._objects = {}
        if not waits:
            return
        objects = self.objects(waits, {thread.tid for thread in draft.threads})
        ids = {(lock.kind, lock.address): lock.id for lock in draft.locks if not lock.destroyed}
        draft.threads = self.threads_with(draft.threads, waits, objects, ids, now)
        waiters: dict[int, list[KernelWait]] = {}
        for wait in sorted(waits, key=lambda wait_: wait_.since):
            lock = _lock_id(objects[wait.tid], ids)
            waiters.setdefault(lock, []).append(wait)
            self._objects[lock] = objects[wait.tid]
        changed_locks = [
            replace(lock, waiters=(*lock.waiters, *[wait.tid for wait in waiters[lock.id]]))
            if lock.id in waiters
            else lock
            for lock in draft.locks
        ]
        with_rows = {lock.id for lock in draft.locks}
        new = [
            self._lock(lock, self._objects[lock], waiting, now)
            for lock, waiting in waiters.items()
            if lock not in with_rows
        ]
        draft.locks = (*changed_locks, *new)

    def threads_with(
        self,
        threads: Sequence[Thread],
        waits: Collection[KernelWait],
        objects: Mapping[int, SyncObject],
        ids: Mapping[tuple[Kind, int], int],
        now: float,
    ) -> tuple[Thread, ...]:
        """Return the threads with these waits, and with the locks that their owners hold.

        Args:
            threads: all threads.
            waits: the unobserved waits.
            objects: by tid, the object of each wait.
            ids: of the locks that the library knows.
            now: time.monotonic().
        """
        by_tid = {wait.tid: wait for wait in waits}
        held: dict[int, set[int]] = {}
        for sync_object in objects.values():
            if sync_object.owner and sync_object.kind in CONTENTION_KINDS:
                held.setdefault(sync_object.owner, set()).add(_lock_id(sync_object, ids))
        changed_threads = []
        for thread in threads:
            wait = by_tid.get(thread.tid)
            if wait is not None and thread.waiting_for is None:
                thread = replace(thread, waiting_for=_wait(wait, objects[wait.tid], ids, now))
            if missing := held.get(thread.tid, set()) - {hold.lock for hold in thread.holds}:
                more = [Held(lock=lock, site=0, duration_s=None) for lock in sorted(missing)]
                thread = replace(thread, holds=(*thread.holds, *more))
            changed_threads.append(thread)
        return tuple(changed_threads)

    def rename(self, draft: Draft) -> None:
        """Fill in the names of these locks that are known by now."""
        if not self._objects:
            return
        stacks = {
            thread.waiting_for.lock: thread.waiting_for.stack
            for thread in draft.threads
            if thread.waiting_for is not None
        }
        draft.locks = tuple(
            replace(lock, name=self._name(lock.id, self._objects[lock.id], stacks.get(lock.id, 0)))
            if lock.id >= _FIRST_ID and lock.id in self._objects
            else lock
            for lock in draft.locks
        )

    def _lock(
        self, id_: int, sync_object: SyncObject, waiting: Sequence[KernelWait], now: float
    ) -> Lock:
        contends = sync_object.kind in CONTENTION_KINDS
        wait_s = sum(max(0.0, now - wait.since) for wait in waiting)
        return Lock(
            id=id_,
            address=sync_object.address,
            kind=sync_object.kind,
            name=self._name(id_, sync_object, waiting[0].stack),
            contended=len(waiting),
            wait_s=wait_s,
            wait_max_s=max(0.0, now - waiting[0].since),
            wait_max_is_lower_bound=True,
            hold_max_s=None,
            holders=(sync_object.owner,) if sync_object.owner and contends else (),
            waiters=tuple(wait.tid for wait in waiting),
            wait_stacks=_wait_stacks(waiting, now, not contends),
            rates=WAITS_ALONE,
            recursive=sync_object.recursive,
            freed_at_exit=sync_object.robust,
            readers=sync_object.readers,
            idle=not contends,
            idle_s=0.0 if contends else wait_s,
        )

    def _name(self, id_: int, sync_object: SyncObject, stack: int) -> str:
        stacks = (
            LockStacks(most_wait=partial(self._stacks.frames, stack)) if stack else LockStacks()
        )
        lock = LockIdentity(id_, 0, sync_object.kind, sync_object.address)
        return self._names.name(lock, stacks)


def _wait_stacks(waiting: Sequence[KernelWait], now: float, idle: bool) -> tuple[WaitStack, ...]:
    sums: dict[int, tuple[int, float]] = {}
    for wait in waiting:
        if wait.stack:
            count, wait_s = sums.get(wait.stack, (0, 0.0))
            sums[wait.stack] = count + 1, wait_s + max(0.0, now - wait.since)
    return tuple(
        WaitStack(stack=stack, count=count, wait_s=wait_s, idle=idle)
        for stack, (count, wait_s) in sorted(sums.items(), key=lambda item: -item[1][1])
    )


def _lock_id(sync_object: SyncObject, ids: Mapping[tuple[Kind, int], int]) -> int:
    return ids.get((sync_object.kind, sync_object.address), _FIRST_ID + sync_object.address)


def _wait(
    wait: KernelWait, sync_object: SyncObject, ids: Mapping[tuple[Kind, int], int], now: float
) -> Wait:
    contends = sync_object.kind in CONTENTION_KINDS
    return Wait(
        lock=_lock_id(sync_object, ids),
        kind=sync_object.kind,
        duration_s=max(0.0, now - wait.since),
        holders=(sync_object.owner,) if sync_object.owner and contends else (),
        stack=wait.stack,
        site=0,
        seq=wait.runs,
        timed=wait.futex.timed,
        shared=sync_object.kind is Kind.RWLOCK and not sync_object.writes,
        holder_seen=sync_object.owner,
        pshared=sync_object.shared,
        awaits=sync_object.awaits,
        parties=sync_object.parties,
        idle=not contends,
        is_lower_bound=True,
    )
