"""The last look at a process that has ended: its file is still open, and says the final figures.

What is true of the end depends on how it came. A killed process left its file as it was: who waited
for what and who held what then is shown as it was, of threads that are dead. A process that exited
took its threads along wherever they were; those that waited for work then are no news, so nothing
is shown as waited for or held. In both cases counters are final, a wait that was going on counts up
to the last sign of life, rates and shares are those of the look before, and a deadlock that the
process ended in is still told.
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
    """Return the threads that lived to the end, by tid, as the kernel showed them last: the blocks
    still in use, but for those whose thread was seen dead before."""
    before = {thread.tid: thread for thread in last.threads} if last else {}
    found = {}
    for tid, raw in reading.newest.items():
        seen = before.get(tid)
        if seen is None:
            found[tid] = KernelThread(clean(raw.block.name.partition(b"\0")[0]), "", 0.0)
        elif seen.alive:
            found[tid] = KernelThread(seen.name, "", seen.cpu_s)
    return found


def last_sign_of_life(
    reading: Reading, recorder: event_ring.FlightRecorder, seen_alive: int
) -> int:
    """Return the latest moment at which the process is known to have lived, in ticks: this look may
    come long after. ``seen_alive``: when a look last found it so, 0 if none did."""
    signs = [seen_alive, reading.header.clock0_ticks]
    for thread in reading.threads:
        signs += [entry.since for entry in thread.held]
        if thread.wait is not None:
            signs.append(thread.wait.since)
    signs += [event_ring.end(event) for event in recorder.newest]
    signs += [mark.start for mark in recorder.marks]
    # What the file says is not trusted: nobody lived after this look.
    return max(sign for sign in signs if sign <= reading.now)


def annotate(snapshot: Draft, reading: Reading, last: Snapshot | None) -> None:
    """Fill in the end: every thread is dead.

    ``last`` is the snapshot before. It has what only /proc tells, and the threads of a process in
    which the library watched none.
    """
    exited = reading.header.state == lib.LT_EXITED
    threads = snapshot.threads
    if last is not None and not reading.threads:
        threads = last.threads
    snapshot.ended = True
    if last is not None:
        snapshot.process = replace(last.process, cpu_share=0.0)
    snapshot.threads = tuple(_dead(threads, last.threads if last else (), exited))
    snapshot.locks = tuple(_left(snapshot.locks, last.locks if last else (), exited))


def _dead(threads: Iterable[Thread], last: Iterable[Thread], exited: bool) -> Iterable[Thread]:
    before = {thread.tid: thread for thread in last}
    for thread in threads:
        seen = before.get(thread.tid)
        dead = replace(
            thread,
            alive=False,
            cpu_share=0.0,
            time=None,
            wait_share=seen.wait_share if seen else 0.0,
            idle_share=seen.idle_share if seen else 0.0,
        )
        yield replace(dead, waiting_for=None, holds=()) if exited else dead


def _left(locks: Iterable[Lock], last: Iterable[Lock], exited: bool) -> Iterable[Lock]:
    rates = {lock.id: lock.rates for lock in last}
    for lock in locks:
        left = replace(lock, rates=rates.get(lock.id, LockRates()))
        yield replace(left, waiters=(), holders=()) if exited else left
