"""The last scan of a process that has ended: its file is still open and holds the final figures.

A killed process left its file as it was. The snapshot shows its last waits and holds, of dead
threads. A process that exited ended its threads anywhere, and threads that waited for work are no
news. So its snapshot shows no waits and no holds. In both cases the counters are final. A wait that
went on counts up to the last sign of life. Rates and shares are those of the scan before. A
deadlock that was there at the end is kept.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from locktop.collector.linux.threads import KernelThread
from locktop.collector.model import Draft, Lock, LockRates, Snapshot, Thread
from locktop.collector.native import lib
from locktop.collector.sanitize import clean
from locktop.collector.shm import event_ring
from locktop.collector.shm.reader import Reading


def last_tasks(reading: Reading, last: Snapshot | None) -> dict[int, KernelThread]:
    """Return the threads that lived to the end, by tid, as the kernel showed them last.

    These are the blocks still in use, without the threads that a scan or the library saw dead
    before.
    """
    before = {thread.tid: thread for thread in last.threads} if last else {}
    tasks = {}
    for tid, raw in reading.newest.items():
        before_end = before.get(tid)
        if raw.block.state == lib.LT_THREAD_KEPT:
            continue
        if before_end is None:
            tasks[tid] = KernelThread(
                name=clean(raw.block.name.partition(b"\0")[0]), state="", cpu_s=0.0
            )
        elif before_end.alive:
            tasks[tid] = KernelThread(name=before_end.name, state="", cpu_s=before_end.cpu_s)
    return tasks


def last_sign_of_life(
    reading: Reading, recorder: event_ring.FlightRecorder, seen_alive: int
) -> int:
    """Return the latest moment at which the process is known to have lived, in ticks.

    This scan may come long after that moment.

    Args:
        reading: the last reading of the file.
        recorder: the flight recorder.
        seen_alive: when a scan last found the process alive; 0: no scan did.
    """
    signs = [seen_alive, reading.header.clock0_ticks]
    for thread in reading.threads:
        signs += [entry.since for entry in thread.held]
        if thread.wait is not None:
            signs.append(thread.wait.since)
    signs += [event_ring.end(event) for event in recorder.newest]
    signs += [mark.start for mark in recorder.marks]
    # The file is not trusted: the process cannot have lived after this scan.
    return max(sign for sign in signs if sign <= reading.now)


def annotate(snapshot: Draft, reading: Reading, last: Snapshot | None) -> None:
    """Fill in the end: every thread is dead.

    Args:
        snapshot: the draft.
        reading: the last reading of the file.
        last: the snapshot before. Its data from /proc is kept. Its threads are kept too if the
            library watched none.
    """
    exited = reading.header.state == lib.LT_EXITED
    threads = snapshot.threads
    if last is not None and not reading.threads:
        threads = last.threads
    snapshot.ended = True
    if last is not None:
        snapshot.process = replace(last.process, cpu_share=0.0)
    snapshot.threads = tuple(_final_threads(threads, last.threads if last else (), exited))
    snapshot.locks = tuple(_final_locks(snapshot.locks, last.locks if last else (), exited))


def _final_threads(
    threads: Iterable[Thread], last: Iterable[Thread], exited: bool
) -> Iterable[Thread]:
    before = {thread.tid: thread for thread in last}
    for thread in threads:
        before_end = before.get(thread.tid)
        dead = replace(
            thread,
            alive=False,
            cpu_share=0.0,
            time=None,
            wait_share=before_end.wait_share if before_end else 0.0,
            idle_share=before_end.idle_share if before_end else 0.0,
        )
        yield replace(dead, waiting_for=None, holds=()) if exited else dead


def _final_locks(locks: Iterable[Lock], last: Iterable[Lock], exited: bool) -> Iterable[Lock]:
    rates = {lock.id: lock.rates for lock in last}
    for lock in locks:
        final = replace(lock, rates=rates.get(lock.id, LockRates()))
        yield replace(final, waiters=(), holders=()) if exited else final
