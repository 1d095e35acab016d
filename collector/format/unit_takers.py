"""The words about threads that took units of a semaphore and did not post them."""

from __future__ import annotations

from collections.abc import Iterator

from locktop.collector.analysis.semaphore_ownership import taken_units
from locktop.collector.format.snapshot_index import SnapshotIndex
from locktop.collector.format.units import counted
from locktop.collector.model import Kind, Snapshot

_MAX_NAMED = 3


def phrase(index: SnapshotIndex, lock_id: int) -> str:
    """Return "all 3 units taken, not posted: a, b (ended), 1 by a thread that ended".

    The result is "" if the takers are not known, or if not all units are taken.
    """
    taken = index.taken_units.get(lock_id)
    if taken is None:
        return ""
    named = [_taker(index, tid, units) for tid, units in taken.takers[:_MAX_NAMED]]
    more = len(taken.takers) - _MAX_NAMED
    if more > 0:
        named.append(counted(more, "more thread"))
    if taken.ended:
        by = "a thread that ended" if taken.ended == 1 else "threads that ended"
        named.append(f"{taken.ended} by {by}")
    what = f"all {taken.all} units" if taken.all > 1 else "the only unit"
    return f"{what} taken, not posted: {', '.join(named)}"


def _taker(index: SnapshotIndex, tid: int, units: int) -> str:
    thread = index.threads.get(tid)
    ended = " (ended)" if thread is not None and not thread.alive else ""
    return f"{index.thread_name(tid)}{ended}" + (f" x{units}" if units > 1 else "")


def lines(snapshot: Snapshot) -> Iterator[str]:
    """Yield the section of a text report: a line for each semaphore whose units are all taken."""
    if not taken_units(snapshot):
        return  # the indexes of a large process take time
    index = SnapshotIndex(snapshot)
    yield "UNITS TAKEN AND NOT POSTED"
    for lock_id in index.taken_units:
        lock = index.locks[lock_id]
        kind = "" if lock.name.startswith(Kind.SEM) else f"{Kind.SEM} "
        yield f"  {kind}{index.lock_name(lock_id)}: {phrase(index, lock_id)}"
