"""Long waits for conditions that no thread signals.

A pool that waits for its first work looks the same. So the finding states what was counted, and no
more. The idle rules know the functions of many pools: waits in such functions are left out. So are
waits at a source location where a wait has ended before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from locktop.collector.analysis.contention_findings import NoSignal
from locktop.collector.analysis.idle.rules import names_by_kind_alone
from locktop.collector.model import Contents, Kind, Lock, Thread, ThreadState
from locktop.collector.model.frames import innermost_own_frame

#: Seconds that each of the threads has waited.
MIN_WAIT_S = 10.0

#: Address, function, file and line of the innermost frame that is no wrapper.
_Location = tuple[int, str, str | None, int | None]
_Waiter = tuple[Thread, Lock, float]  # and the seconds of its wait


def find(snapshot: Contents, idle: Iterable[tuple[Lock, list[Thread]]]) -> Iterator[NoSignal]:
    """Yield the waits that no signal has reached, by source location, the longest wait first.

    Args:
        snapshot: The scan, with classified waits.
        idle: The locks with idle waits, and their waiters.
    """
    if not snapshot.complete:
        return
    waiters = [
        (thread, lock, thread.waiting_for.duration_s)
        for lock, threads in idle
        if _is_unsignalled(lock)
        for thread in threads
        if thread.waiting_for is not None and _is_of_interest(snapshot, thread)
    ]
    if not waiters:
        return
    ended_locations = _locations_of_ended_waits(snapshot)
    by_location: dict[_Location, list[_Waiter]] = {}
    for waiter in sorted(waiters, key=lambda waiter: (-waiter[2], waiter[0].tid)):
        location = _location(snapshot, waiter[0].stack)
        if location is not None:
            by_location.setdefault(location, []).append(waiter)
    for location, waiters_there in by_location.items():
        if location not in ended_locations:
            yield _finding(waiters_there)


def _is_unsignalled(lock: Lock) -> bool:
    """Whether each signal of a condition came while no thread waited, and no wait has ended."""
    return (
        lock.kind is Kind.COND
        and lock.acquisitions == 0
        and lock.signals is not None
        and lock.unheard is not None
        and lock.signals <= lock.unheard  # a lower bound
    )


def _is_of_interest(snapshot: Contents, thread: Thread) -> bool:
    wait = thread.waiting_for
    return (
        wait is not None
        and wait.duration_s >= MIN_WAIT_S
        and wait.stack != 0
        and not wait.timed
        and not wait.pshared
        and thread.state is ThreadState.IDLE
        and snapshot.why.get(thread.tid) in names_by_kind_alone()
    )


def _locations_of_ended_waits(snapshot: Contents) -> set[_Location | None]:
    """Return where threads have waited for conditions before. There they wait for work.

    The library counts the stack of a wait at the next release of the mutex, after ``acquisitions``.
    """
    return {
        _location(snapshot, entry.stack)
        for lock in snapshot.locks
        if lock.kind is Kind.COND
        for entry in lock.wait_stacks
        if entry.count or lock.acquisitions
    }


def _location(snapshot: Contents, stack: int) -> _Location | None:
    """Return where a thread waits; None without a name, for the idle rules go by names."""
    frame = innermost_own_frame(snapshot.stacks.get(stack, ()))
    if frame is None or not frame.function:
        return None
    return frame.address, frame.function, frame.file, frame.line


def _finding(waiters: list[_Waiter]) -> NoSignal:
    _, first, longest_s = waiters[0]
    locks = {lock.id: lock for _, lock, _ in waiters}
    return NoSignal(
        lock=first.id,
        tids=tuple(sorted(thread.tid for thread, _, _ in waiters)),
        waiters=len(waiters),
        longest_wait_s=longest_s,
        signals=sum(lock.signals or 0 for lock in locks.values()),
        conditions=len(locks),
    )
