"""The lack of CPUs as the cause of waits for locks: the lock is free, and nobody can take it."""

from __future__ import annotations

from collections.abc import Iterator

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
    held the lock: its holder had released it, and the next thread did not run yet. On average more
    than 2 threads for each CPU were on a CPU or ready to run. Threads that waited for locks were
    ready for half of the interval in sum.

    There is no finding if the holders were not known at all times, or if the kernel does not count
    the time in the run queue.
    """
    if not snapshot.interval_s or snapshot.level == "counting" or not snapshot.complete:
        return
    locks = [lock for lock in snapshot.locks if lock.rates.wait and not lock.idle]
    unheld = {lock.id: rate for lock, rate in _unheld_rates(snapshot, locks)}
    wait = sum([lock.rates.wait for lock in locks])
    if wait < _MIN_WAIT or sum(unheld.values()) < wait * _MIN_UNHELD:
        return
    threads = [thread for thread in snapshot.threads if thread.alive]
    on_cpu = sum([thread.time.cpu for thread in threads if thread.time is not None])
    ready = sum(map(_ready, threads))
    held_up = [thread for thread in threads if thread.wait_share and _ready(thread)]
    cpus = snapshot.process.cpus
    if not cpus or on_cpu + ready <= cpus * _MIN_WANTED or sum(map(_ready, held_up)) < _MIN_READY:
        return
    worst = max(unheld, key=lambda id_: (unheld[id_], -id_))
    yield CpuStarved(
        lock=worst if 2 * unheld[worst] >= sum(unheld.values()) else 0,
        tids=tuple(sorted(thread.tid for thread in held_up)),
        wanted=on_cpu + ready,
        cpus=cpus,
        cpus_used=on_cpu,
        unheld=sum(unheld.values()) / wait,
    )


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
