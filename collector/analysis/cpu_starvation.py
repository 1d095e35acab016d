"""The lack of CPUs as the cause of waits for locks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from locktop.collector.analysis.contention_findings import CpuStarved
from locktop.collector.model import Contents, Lock, Thread
from locktop.collector.model.kinds import HELD_KINDS

_MIN_WAIT = 0.5  # seconds waited per second
_MIN_UNHELD = 0.5  # share of the wait
_MIN_WANTED = 2  # threads for each CPU
_MIN_READY = 0.5  # waiting threads that were ready to run


def find(snapshot: Contents) -> Iterator[CpuStarved]:
    """Yield the finding of a snapshot, if there is one. All figures are of the last interval.

    All threads together wait at least 0.5 s a second for locks. During half of that time no thread
    held the lock: its holder had released it, and the next thread did not run yet. A holder that
    was ready to run counts as well, if the lock was its own throughout the interval. On average
    more than 2 threads for each CPU were on a CPU or ready to run. Threads that waited for locks,
    and such holders, were ready for half of the interval in sum.

    There is no finding if the holders were not known at all times, or if the kernel does not count
    the time in the run queue.
    """
    if not snapshot.interval_s or snapshot.level == "counting" or not snapshot.complete:
        return
    locks = [lock for lock in snapshot.locks if lock.rates.wait and not lock.idle]
    unheld = {lock.id: rate for lock, rate in _unheld_rates(snapshot, locks)}
    threads = {thread.tid: thread for thread in snapshot.threads if thread.alive}
    holders = _lasting_holders(locks, threads, snapshot.interval_s)
    unrun = {
        lock.id: (lock.rates.wait - unheld[lock.id]) * _ready(holders[lock.id])
        for lock in locks
        if lock.id in holders and lock.id in unheld and lock.rates.wait > unheld[lock.id]
    }
    stalled = {id_: rate + unrun.get(id_, 0.0) for id_, rate in unheld.items()}
    wait = sum([lock.rates.wait for lock in locks])
    if wait < _MIN_WAIT or sum(stalled.values()) < wait * _MIN_UNHELD:
        return
    on_cpu = sum([thread.time.cpu for thread in threads.values() if thread.time is not None])
    ready = sum(map(_ready, threads.values()))
    starved = {holders[id_].tid for id_, rate in unrun.items() if rate}
    held_up = [
        thread
        for thread in threads.values()
        if (thread.wait_share or thread.tid in starved) and _ready(thread)
    ]
    cpus = snapshot.process.cpus
    if not cpus or on_cpu + ready <= cpus * _MIN_WANTED or sum(map(_ready, held_up)) < _MIN_READY:
        return
    worst = max(stalled, key=lambda id_: (stalled[id_], -id_))
    yield CpuStarved(
        lock=worst if 2 * stalled[worst] >= sum(stalled.values()) else 0,
        tids=tuple(sorted(thread.tid for thread in held_up)),
        wanted=on_cpu + ready,
        cpus=cpus,
        cpus_used=on_cpu,
        unheld=sum(unheld.values()) / wait,
        unrun=sum(unrun.values()) / wait,
    )


def _lasting_holders(
    locks: list[Lock], threads: Mapping[int, Thread], interval_s: float
) -> dict[int, Thread]:
    """Return, by lock, the only holder that has had the lock since the scan before or longer."""
    lasting = {}
    for lock in locks:
        holder = threads.get(lock.holders[0]) if len(lock.holders) == 1 else None
        held = [held for held in holder.holds if held.lock == lock.id] if holder else []
        if holder is not None and any((each.duration_s or 0.0) >= interval_s for each in held):
            lasting[lock.id] = holder
    return lasting


def _unheld_rates(snapshot: Contents, locks: list[Lock]) -> Iterator[tuple[Lock, float]]:
    """Yield locks with the seconds a second that threads waited while no thread had the lock.

    The holder of another lock may be a thread that is not known.
    """
    waits = (thread.waiting_for for thread in snapshot.threads)
    shared = {wait.lock for wait in waits if wait is not None and wait.pshared}
    for lock in locks:
        if lock.kind in HELD_KINDS and not lock.foreign_releases and lock.id not in shared:
            yield lock, lock.rates.unheld or 0.0


def _ready(thread: Thread) -> float:
    """Return the share of the interval that a thread was ready without a CPU, 0 if not counted."""
    return thread.time.runnable if thread.time is not None else 0.0
