"""The present waits in sentences: the lock, who waits, since when, the holder, what it does."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from locktop.collector.analysis.deadlock_report import moment_before
from locktop.collector.model import ActivityState, Kind, Lock, Snapshot, Thread
from locktop.collector.render.words import (
    activity,
    brief_holds,
    probable_holder,
    readers,
    renewed_waits,
    unit_takers,
)
from locktop.collector.render.words.foreign_code import innermost_program_frame
from locktop.collector.render.words.lock_kind import name_with_kind
from locktop.collector.render.words.named_holder import Certainty, NamedHolder
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.render.words.source_location import short_location
from locktop.collector.render.words.units import lasting

#: Locks that have a sentence.
_MAX_LOCKS = 5
#: Of a wait for a condition.
_NOBODYS = "nobody holds a condition, so this is no lock that locktop can judge"

#: Of a wait that the first scan met: such a thread may wait again and again.
_PERHAPS_RENEWED = "(with a time limit, perhaps not the first such wait)"


def sentences(snapshot: Snapshot, without: Container[int] = ()) -> Iterator[str]:
    """Yield a sentence for each lock that threads wait for now, the longest waits first.

    A lock whose holder keeps waiters of other locks comes first.

    Args:
        snapshot: the process.
        without: the ids of locks that have no sentence.
    """
    index = SnapshotIndex(snapshot)
    every = dict.fromkeys([*_root_locks(index), *_waited_for(index)])
    locks = [
        id_ for id_ in every if id_ in index.locks and id_ not in without and index.waiters_of(id_)
    ]
    alike = {id_: _alike_waiters(index, id_, locks) for id_ in locks}
    locks = [id_ for id_ in locks if alike[id_]]
    for id_ in locks[:_MAX_LOCKS]:
        yield sentence(index, index.locks[id_], alike[id_])
    if len(locks) > _MAX_LOCKS:
        left = len(locks) - _MAX_LOCKS
        yield f"and {left} more lock{'s' * (left > 1)} that threads wait for"


def _alike_waiters(index: SnapshotIndex, id_: int, locks: Sequence[int]) -> list[Thread]:
    """The waiters of a lock. The first of conditions with one name has the waiters of all.

    Each session of a server may wait for a condition of its own.
    """
    lock = index.locks[id_]
    if lock.kind is not Kind.COND or lock.holders or not lock.name:
        return index.waiters_of(id_)
    same = [
        other
        for other in locks
        if (index.locks[other].kind, index.locks[other].name) == (lock.kind, lock.name)
    ]
    waiters = [thread for other in same for thread in index.waiters_of(other)]
    return sorted(waiters, key=_longest_first) if id_ == same[0] else []


def _longest_first(thread: Thread) -> float:
    return -thread.waiting_for.duration_s if thread.waiting_for is not None else 0.0


def sentence(index: SnapshotIndex, lock: Lock, waiters: Sequence[Thread]) -> str:
    """Return the sentence about a lock; ``waiters``: at least one, the longest wait first."""
    wait = waiters[0].waiting_for
    assert wait is not None
    many = len(waiters) > 1
    who = f"{len(waiters)} threads wait" if many else f"{index.thread_name(waiters[0].tid)} waits"
    since = _since(index.snapshot, wait.duration_s, wait.is_lower_bound)
    length = f"{', the longest' if many else ''} for {since}" if wait.duration_s else ", just begun"
    if index.snapshot.is_of_core:
        length = ""
    if lock.kind is Kind.COND and not (lock.holders or lock.holders_probable):
        who += f" at {_condition(lock)}"
        if before := renewed_waits.earlier_waits_s(index, waiters):
            length += f", after {lasting(before, False)} of such waits with a time limit"
        elif wait.timed and wait.is_lower_bound:
            length += f" {_PERHAPS_RENEWED}"
        return f"{who}{length}; {_NOBODYS}{_peer(index, lock)}"
    return f"{who} for {name_with_kind(lock.kind, lock.name)}{length}; {_holder(index, lock)}"


def _condition(lock: Lock) -> str:
    if not lock.name:
        return "a condition"
    _, is_called_so, where = lock.name.partition(f"{lock.kind} ")
    return f"a condition {where}" if is_called_so else f"condition {lock.name}"


def _peer(index: SnapshotIndex, lock: Lock) -> str:
    """The only thread beside the waiters that does not wait, if it is known."""
    named = index.holder_of(lock)
    if named is None:
        return ""
    tid = named.tids[0]
    does = _now(index, lock, tid)
    which = f", which {does}" if does else ""
    return f"; {named.why}: {index.holders(named.tids, lock.id)}{which}{_location(index, named)}"


def _root_locks(index: SnapshotIndex) -> list[int]:
    return [root.lock for root in index.blocking.roots]


def _waited_for(index: SnapshotIndex) -> list[int]:
    return [thread.waiting_for.lock for thread in index.waiting if thread.waiting_for is not None]


def _since(snapshot: Snapshot, duration_s: float, is_lower_bound: bool) -> str:
    """The duration, and since when if that is known."""
    since = "" if is_lower_bound else moment_before(snapshot.taken_at, duration_s)
    return lasting(duration_s, is_lower_bound) + (f" (since {since})" if since else "")


def _holder(index: SnapshotIndex, lock: Lock) -> str:
    """The holder of the lock, since when it holds it, what it does now, and where."""
    named = index.holder_of(lock)
    if named is None:
        return _not_named(index, lock)
    tid, names = named.tids[0], index.holders(named.tids, lock.id)
    does, location = _now(index, lock, tid), _location(index, named)
    also, which = (f", {word} {does}{location}" if does else location for word in ("and", "which"))
    if named.certainty is Certainty.PROBABLE:
        why = probable_holder.evidence(lock, index.snapshot.sites)
        phrase = probable_holder.phrase(lock, names, index.snapshot.sites)
        return f"{phrase}{also if why else which}"
    if named.certainty is Certainty.LIKELY:
        return f"{_not_named(index, lock)}; {named.why}: {names}{which}"
    held = index.held(tid, lock.id)
    since = ""
    if held is not None and held.duration_s:
        since = f" for {lasting(held.duration_s, held.is_lower_bound)}"
    site = index.held_site(tid, lock.id)
    taken = f", taken at {site}" if site else ""
    return f"{names} holds it{since}{taken}{also}"


def _not_named(index: SnapshotIndex, lock: Lock) -> str:
    """Return what is known of the holders of a lock that names none."""
    if count := readers.phrase(lock):
        return f"held by {count}, {readers.UNKNOWN}"
    if takers := unit_takers.phrase(index, lock.id):
        return takers
    brief = brief_holds.phrase(index, lock)
    return f"its holder is not known{': ' * bool(brief)}{brief}"


def _location(index: SnapshotIndex, named: NamedHolder) -> str:
    """Where the code of the holder is now, "" where that is not known."""
    now = named.now
    if now is None or now.tid != named.tids[0] or now.stack_age_s:
        return ""
    frame = innermost_program_frame(index.stack(now.stack))
    return f", at {short_location(frame)}" if frame is not None else ""


def _now(index: SnapshotIndex, lock: Lock, tid: int) -> str:
    thread = index.threads.get(tid)
    wait = thread.waiting_for if thread is not None else None
    if wait is not None:
        return f"waits for {index.lock_name(wait.lock)} now"
    now = lock.holder_activity
    if now is None or now.tid != tid:
        now = thread.now if thread is not None else None
    if now is not None and now.doing is ActivityState.BLOCKED and now.duration_s:
        duration = lasting(now.duration_s, now.is_lower_bound)
        return f"has been {activity.asleep_in(now)} for {duration}"
    if now is not None and now.doing is ActivityState.ENDED:
        return "ended without releasing it"
    does = activity.doing(now, tid)
    return f"is {does} now" if does else ""
