"""The holder of a lock in one of the last scans, for a scan that names none.

A lock that changes hands all the time has a holder that the code of a thread gives away in some of
the scans alone.
"""

from __future__ import annotations

from locktop.collector.model import Kind, Lock
from locktop.collector.render.words.named_holder import Certainty, EarlierHolder
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.render.words.units import duration

#: Seconds. Older scans say nothing about the present waits.
_MAX_AGE_S = 3.0


def recall(index: SnapshotIndex, last: SnapshotIndex | None) -> SnapshotIndex:
    """Return an index with the holders that it names and that those before it named.

    Args:
        index: the index of a scan.
        last: that of the scan before; None for the first.
    """
    now_s, process = index.snapshot.duration_s, index.snapshot.process
    is_same = last is not None and last.snapshot.process.pid == process.pid
    holders = {
        key: holder
        for key, holder in (last.earlier_holders if last and is_same else {}).items()
        if 0.0 <= now_s - holder.at_s <= _MAX_AGE_S
    }
    for lock in index.locks.values():
        named = index.holder_of(lock) if lock.waiters and not lock.idle else None
        if named is not None and named.certainty is not Certainty.EXACT:
            names = f"{named.adverb}{index.holders(named.tids, lock.id)}"
            holders[_key(lock)] = EarlierHolder(named.tids, names, now_s)
    index.earlier_holders = holders
    return index


def find(index: SnapshotIndex, lock: Lock) -> EarlierHolder | None:
    """Return the holder of a lock in one of the last scans; None if this scan names one."""
    holder = index.earlier_holders.get(_key(lock))
    if holder is None or lock.holders or index.holder_of(lock) is not None:
        return None
    return holder if index.snapshot.duration_s > holder.at_s else None


def phrase(index: SnapshotIndex, lock: Lock) -> str:
    """Return "400 ms ago probably flusher" for a lock without a present holder, else ""."""
    holder = find(index, lock)
    if holder is None:
        return ""
    return f"{duration(index.snapshot.duration_s - holder.at_s)} ago {holder.names}"


def _key(lock: Lock) -> int | str:
    """Return the id of a lock, or the name of conditions: each thread may have one of its own."""
    return lock.name if lock.kind is Kind.COND and lock.name else lock.id
