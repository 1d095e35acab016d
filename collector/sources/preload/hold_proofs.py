"""How long holds have lasted at least, by the waits for them.

A lock that was not released since a thread began to wait for it is held by the same thread since.
The library charges each release, and each post of a semaphore, with the waits for the lock (native
blame.h). So the sum of their begins in ``lt_lock.waits`` is exact only without a release. The locks
are read after the threads, so that a release between the
two spoils the proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from locktop.collector.analysis.hold_bounds import HoldKey
from locktop.collector.model import Draft, Lock
from locktop.collector.model.kinds import CONTENTION_KINDS, WOKEN_KINDS
from locktop.collector.native import lib
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.kinds import KIND_SHIFT, KINDS
from locktop.collector.shm.layout import LockRow, WaitBlock

#: Seconds. A release just after a wait is published is not charged with that wait.
_MIN_S = 0.1
_BITS: int = lib.LT_WAITS_BITS
_COUNT = lib.LT_WAITS_NEW - 1
_SUM = (1 << (64 - _BITS)) - 1
_CHARGED = CONTENTION_KINDS | WOKEN_KINDS


def find(
    draft: Draft,
    waits: Iterable[WaitBlock],
    rows: Mapping[int, LockRow],
    now: int,
    shift: int,
    clock: Clock,
) -> dict[HoldKey, float]:
    """Return how long some holds have lasted at least, in seconds.

    Args:
        draft: the draft, with the holders of semaphores.
        waits: the waits of the same reading.
        rows: the locks of the same reading, by id.
        now: the ticks of that reading.
        shift: lt_header.wait_shift.
        clock: converts ticks.
    """
    untimed = {
        held.lock: thread.tid
        for thread in draft.threads
        for held in thread.holds
        if held.duration_s is None and not held.shared and not thread.pid
    }
    if not untimed:
        return {}
    locks = {lock.id: lock for lock in draft.locks if lock.id in untimed and lock.waiters}
    by_lock: dict[int, list[WaitBlock]] = {}
    for wait in waits:
        lock = locks.get(wait.lock)
        if lock is not None and KINDS.get(wait.key >> KIND_SHIFT) is lock.kind:
            by_lock.setdefault(wait.lock, []).append(wait)
    proved: dict[HoldKey, float] = {}
    for id_, of_lock in by_lock.items():
        since = _held_since(locks[id_], of_lock, rows.get(id_), shift & 63)
        held_s = clock.seconds(now - since) if since else 0.0
        if held_s >= _MIN_S and locks[id_].holders == (untimed[id_],):
            proved[untimed[id_], id_] = held_s
    return proved


def _held_since(lock: Lock, waits: Sequence[WaitBlock], row: LockRow | None, shift: int) -> int:
    """Return the ticks since which the lock was not released, 0 if that is not known."""
    begins = [wait.since for wait in waits]
    if row is None:
        return 0
    if lock.kind not in _CHARGED or row.waits & _COUNT != len(begins):
        return 0
    total = sum(begin >> shift for begin in begins) & _SUM
    return min(begins) if row.waits >> _BITS == total else 0
