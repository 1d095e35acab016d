"""What goes on at each lock in one look: who has it, who waits for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from locktop.collector.linux.threads import KernelThread, KernelThreads
from locktop.collector.model import CONTENTION_KINDS
from locktop.collector.native import lib
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.kinds import kind_of
from locktop.collector.shm.layout import HeldEntry
from locktop.collector.shm.reader import RawThread
from locktop.collector.sources.preload import blame

#: A lock that nobody lists for as long as this is held unlisted; for less it changes hands.
_HAND_OVER_S = 0.1
_HELD_SHARED: int = lib.LT_HELD_SHARED


@dataclass(slots=True)
class LockNow:
    """Who waits for one lock and who holds it, in ticks."""

    waiters: list[tuple[int, int, int]] = field(default_factory=list)  # ticks, tid, stack
    holders: list[int] = field(default_factory=list)
    held: list[blame.Holder] = field(default_factory=list)
    published: list[int] = field(default_factory=list)  # holders as the waiters saw them
    hold_ticks: int = 0  # of timed holds that go on
    hold_max: int = 0
    holds_timed: int = 0


NOBODY = LockNow()


def presumed(published: list[int], waited: int, clock: Clock) -> list[int]:
    """Return who has a lock that nobody lists, of the holders that its waiters saw: it was taken
    before the library looked, or it changes hands just now. Only in the first case have all waiters
    seen the same owner, and for longer than a change takes. ``waited``: the longest, ticks."""
    lasts = waited > clock.ticks(_HAND_OVER_S)
    return published if lasts and len(published) == 1 else []


def forget_former_owners(now: Mapping[int, LockNow], tasks: KernelThreads, clock: Clock) -> None:
    """A thread that was woken for a lock may not run for long where the machine is busy: until
    then nobody has the lock, whoever had it when its waiters came."""
    for lock in now.values():
        longest = max((ticks for ticks, _, _ in lock.waiters), default=0)
        if (
            not lock.holders
            and presumed(lock.published, longest, clock)
            and not tasks.are_asleep(tid for _, tid, _ in lock.waiters)
        ):
            lock.published.clear()


def held_by_lock(threads: Iterable[RawThread]) -> dict[int, list[tuple[RawThread, HeldEntry]]]:
    """Return by lock who lists it as held. Threads are read one after the other, so a lock that
    changed hands meanwhile is listed by several; it has one owner, or readers, and the last thread
    that was read knows best."""
    found: dict[int, list[tuple[RawThread, HeldEntry]]] = {}
    for thread in threads:
        for entry in thread.held:
            listed = found.setdefault(entry.lock, [])
            if listed and not (entry.flags & listed[-1][1].flags & _HELD_SHARED):
                listed.clear()
            if not listed or listed[-1][0] is not thread:  # one may read-lock it twice
                listed.append((thread, entry))
    return found


def locks_now(
    threads: Iterable[RawThread], tasks: Mapping[int, KernelThread]
) -> dict[int, LockNow]:
    """Return by lock what goes on at it."""
    threads = list(threads)
    now: dict[int, LockNow] = {}
    for lock, listed in held_by_lock(threads).items():
        held = now[lock] = LockNow()
        for thread, entry in listed:
            held.holders.append(thread.block.tid)
            own_wait = thread.wait.lock if thread.wait else 0
            held.held.append((thread.block.tid, entry.site, own_wait))
            if entry.since:
                ticks = max(0, thread.now - entry.since)
                held.hold_ticks += ticks
                held.hold_max = max(held.hold_max, ticks)
                held.holds_timed += 1
    for thread in threads:
        wait, tid = thread.wait, thread.block.tid
        if wait is not None and tid in tasks:
            waited = now.setdefault(wait.lock, LockNow())
            waited.waiters.append((max(0, thread.now - wait.since), tid, wait.stack))
            contends = kind_of(wait.key) in CONTENTION_KINDS
            if contends and wait.holder in tasks and wait.holder not in waited.published:
                waited.published.append(wait.holder)
    return now
