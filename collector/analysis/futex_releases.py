"""The releases of futexes and semaphores that are locks, among the wakes of all waiters.

A futex names no holder. The type of a futex tells whether it is a lock; then the thread that wakes
the waiters has just released it, and the lock has blame (sources/preload/wakers.py). If each holder
that had waited wakes at its release, the holds are timed: they last from the end of the wait to the
wake. Of a semaphore with one unit, each post by a thread that got the unit by a wait ends a hold.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from msgspec.structs import replace

from locktop.collector.model import Lock, Snapshot, WaitRecord
from locktop.collector.model.kinds import SIGNALLED_KINDS, TIMED_BY_WAKES_KINDS, WOKEN_KINDS

#: Nanoseconds between the end of a wait and the begin of its hold. These are one reading of the
#: clock, but records that were copied at two times have times of their own.
_TOLERANCE_NS = 10_000


def join_releases(records: Sequence[WaitRecord], snapshot: Snapshot) -> Sequence[WaitRecord]:
    """Return the records with each timed hold in the record of its wait.

    Releases of which no wait is known stay records of their own. Wakes of what is no lock are left
    out.

    Args:
        records: waits, holds and releases.
        snapshot: has the blame of the futexes and semaphores.
    """
    if not any(record.is_release for record in records):
        return records
    is_timed = {lock.id: _has_holds(lock) for lock in snapshot.locks if _shows_releases(lock)}
    joined: list[WaitRecord] = []
    waits: dict[tuple[int, int], list[WaitRecord]] = {}
    releases: dict[tuple[int, int], list[WaitRecord]] = {}
    for record in records:
        if record.is_release:
            if record.lock in is_timed:
                releases.setdefault((record.tid, record.lock), []).append(record)
        elif is_timed.get(record.lock) and not record.timed_out:
            waits.setdefault((record.tid, record.lock), []).append(record)
        else:
            joined.append(record)
    for (tid, lock), own in releases.items():
        if is_timed[lock]:
            joined += _join(waits.pop((tid, lock), []), own)
        else:
            joined += map(_remove_hold, own)
    for left in waits.values():
        joined += left
    return sorted(joined, key=_began)


def _shows_releases(lock: Lock) -> bool:
    """Return whether a thread that wakes the waiters of a lock lets them go on to take it.

    Some futexes that are locks have no blame: who wakes a reader of a Rust RwLock need not have had
    the lock all the while.
    """
    if lock.kind in TIMED_BY_WAKES_KINDS and not lock.idle:
        return True
    return lock.kind in WOKEN_KINDS and bool(lock.blame)


def _has_holds(lock: Lock) -> bool:
    """Return whether the time from the end of a wait to the wake is a hold of the whole lock."""
    return lock.first_value == 1 if lock.kind in SIGNALLED_KINDS else bool(lock.hold_timed)


def _join(waits: list[WaitRecord], releases: list[WaitRecord]) -> list[WaitRecord]:
    """Return the waits of a thread with their holds, and the other releases."""
    waits.sort(key=lambda wait: wait.got_ns)
    rest = []
    for release in releases:
        index = bisect_left(waits, release.began_ns - _TOLERANCE_NS, key=lambda wait: wait.got_ns)
        if (
            release.hold_ns is None
            or index == len(waits)
            or waits[index].got_ns > release.began_ns + _TOLERANCE_NS
            or waits[index].hold_ns is not None
        ):
            rest.append(release)
        else:
            waits[index] = replace(waits[index], hold_ns=release.hold_ns)
    return waits + rest


def _remove_hold(release: WaitRecord) -> WaitRecord:
    """Return the release alone: the thread may have released the lock before, without a wake."""
    return replace(release, began_ns=release.end_ns, hold_ns=None)


def _began(record: WaitRecord) -> int:
    return record.began_ns
