"""The state of each lock in one scan: its holders and waiters, and the threads around them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from locktop.collector.linux.threads import KernelThread, KernelThreads
from locktop.collector.model import CONTENTION_KINDS, LockUse
from locktop.collector.model.kinds import USES_COUNTED_KINDS
from locktop.collector.native import lib
from locktop.collector.shm import layout
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.kinds import numbers_of
from locktop.collector.shm.layout import HeldRecord, WaitBlock
from locktop.collector.shm.reader import RawThread
from locktop.collector.sources.preload import blame

#: Seconds: a lock that no thread lists for longer is held unlisted; for less it changes hands.
_HAND_OVER_S = 0.1
_HELD_SHARED: int = lib.LT_HELD_SHARED
_KIND_SHIFT: int = lib.LT_KIND_SHIFT
_ADDRESS: int = (1 << _KIND_SHIFT) - 1
_JOIN: int = lib.LT_KIND_JOIN
_TAKEN_STACK, _TAKEN_MORE = 1 << lib.LT_TAKEN_STACK_BIT, 1 << lib.LT_TAKEN_MORE_BIT
_CONTENDING = numbers_of(CONTENTION_KINDS)
_UNOWNED_KINDS = numbers_of(USES_COUNTED_KINDS)


class LockState(Struct):
    """The waiters and holders of one lock, in ticks."""

    waiters: list[tuple[int, int, int]] = field(default_factory=list)  # ticks, tid, stack
    holders: list[int] = field(default_factory=list)
    held: list[blame.Holder] = field(default_factory=list)
    published: list[int] = field(default_factory=list)  # holders that the waiters saw
    hold_ticks: int = 0  # of the timed holds that go on
    hold_max: int = 0
    holds_timed: int = 0


NO_STATE = LockState()


def presumed_holders(published: list[int], waited: int, clock: Clock) -> list[int]:
    """Return the holders of a lock that no thread lists, from the holders that its waiters saw.

    Either a thread took the lock before the library watched, or the lock changes hands just now.
    Only in the first case all waiters saw the same owner, and for longer than a change takes.

    Args:
        published: the holders that the waiters saw.
        waited: the longest wait, ticks.
        clock: converts ticks.
    """
    lasts = waited > clock.ticks(_HAND_OVER_S)
    return published if lasts and len(published) == 1 else []


def forget_former_owners(now: Mapping[int, LockState], tasks: KernelThreads, clock: Clock) -> None:
    """Drop the published owners of locks that have no owner now.

    On a busy machine a thread that was woken for a lock may not run for long. Until then the lock
    has no owner, whoever held it when its waiters came.
    """
    for lock in now.values():
        if lock.holders:
            continue
        longest = max([ticks for ticks, _, _ in lock.waiters], default=0)
        if presumed_holders(lock.published, longest, clock) and not tasks.are_asleep(
            tid for _, tid, _ in lock.waiters
        ):
            lock.published.clear()


def held_by_lock(threads: Iterable[RawThread]) -> dict[int, list[tuple[RawThread, HeldRecord]]]:
    """Return the threads that list each lock as held.

    Threads are read one after the other. So several threads list a lock that changed hands
    meanwhile. The lock has one owner, or readers; the thread that was read last is right.
    """
    listed_by_lock: dict[int, list[tuple[RawThread, HeldRecord]]] = {}
    for thread in threads:
        for entry in thread.held:
            listed = listed_by_lock.setdefault(entry.lock, [])
            if listed and not (entry.flags & listed[-1][1].flags & _HELD_SHARED):
                listed.clear()
            if not listed or listed[-1][0] is not thread:  # a thread may read-lock it twice
                listed.append((thread, entry))
    return listed_by_lock


def lock_states(
    threads: Iterable[RawThread], tasks: Mapping[int, KernelThread]
) -> dict[int, LockState]:
    """Return the state of each lock that a thread holds or waits for, by lock id."""
    # Ended threads come first: the list of a living thread is right if the two differ.
    all_threads = list(threads)
    living = [thread for thread in all_threads if thread.block.tid in tasks]
    if len(living) < len(all_threads):
        living = [thread for thread in all_threads if thread.block.tid not in tasks] + living
    threads = living
    now: dict[int, LockState] = {}
    for lock, listed in held_by_lock(threads).items():
        held = now[lock] = LockState()
        for thread, entry in listed:
            held.holders.append(thread.block.tid)
            own_wait = thread.wait.lock if thread.wait else 0
            held.held.append((thread.block.tid, entry.site, own_wait))
            if entry.since:
                ticks = max(0, thread.now - entry.since)
                held.hold_ticks += ticks
                held.hold_max = max(held.hold_max, ticks)
                held.holds_timed += 1
    seen: set[tuple[int, int]] = set()  # locks and holders
    for thread in threads:
        wait, tid = thread.wait, thread.block.tid
        if wait is not None and tid in tasks:
            lock, holder, ticks = wait.lock, wait.holder, thread.now - wait.since
            waited = now.get(lock)
            if waited is None:
                waited = now[lock] = LockState()
            waited.waiters.append((ticks if ticks > 0 else 0, tid, wait.stack))
            if (
                holder in tasks
                and (lock, holder) not in seen
                and wait.key >> _KIND_SHIFT in _CONTENDING
            ):
                seen.add((lock, holder))
                waited.published.append(holder)
    return now


class ScanContext(Struct):
    """One scan: its threads by tid, the state of each lock, and the tasks that the kernel shows."""

    threads: Mapping[int, RawThread]
    locks: Mapping[int, LockState]
    tasks: Mapping[int, KernelThread]
    _by_pthread: dict[int, int] | None = None
    unowned: set[int] = field(default_factory=set)  # ids of waited-for objects without an owner
    _holders: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for raw in self.threads.values():
            if raw.wait and raw.wait.key >> _KIND_SHIFT in _UNOWNED_KINDS:
                self.unowned.add(raw.wait.lock)

    def holders(self, lock: int) -> tuple[int, ...]:
        """Return the living threads that list a lock as held."""
        holders = self._holders.get(lock)
        if holders is None:
            now = self.locks.get(lock)
            holders = tuple([tid for tid in now.holders if tid in self.tasks]) if now else ()
            self._holders[lock] = holders
        return holders

    def awaited_thread(self, wait: WaitBlock) -> int:
        """Return the living thread that a join waits for, 0 unknown."""
        if wait.key >> _KIND_SHIFT != _JOIN:
            return 0
        if self._by_pthread is None:
            self._by_pthread = {
                raw.block.pthread: tid for tid, raw in self.threads.items() if tid in self.tasks
            }
        return self._by_pthread.get(wait.key & _ADDRESS, 0)

    def uses(self, raw: RawThread, uses: Sequence[layout.UseRecord]) -> tuple[LockUse, ...] | None:
        """Return Thread.uses. ``uses``: the uses in the block of ``raw``."""
        if not raw.uses_are_complete:
            return None
        wanted = [use for use in uses if use.lock in self.unowned]
        return tuple(
            [
                LockUse(
                    lock=use.lock,
                    acquisitions=use.acquisitions,
                    signals=use.signals,
                    life=use.life,
                    **_taken_at(use.taken_at),
                )
                for use in wanted
            ]
        )


def _taken_at(word: int) -> dict[str, Any]:
    """Return the fields of LockUse that lt_lock_counters.taken_at stands for."""
    field_name = "stack" if word & _TAKEN_STACK else "site"
    return {field_name: word & ~(_TAKEN_STACK | _TAKEN_MORE), "took_more": bool(word & _TAKEN_MORE)}


def has_signalled(uses: Iterable[layout.UseRecord]) -> bool:
    """Return Thread.signals."""
    return any(use.has_signalled for use in uses)
