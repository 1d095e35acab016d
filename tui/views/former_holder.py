"""The lines about a thread that may hold a lock, or held it and has released it since."""

from __future__ import annotations

from collections.abc import Iterator

from locktop.collector.model import HELD_KINDS, Event, Lock
from locktop.collector.render.words import earlier_holder
from locktop.collector.render.words.named_holder import Certainty
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.views.cells import duration
from locktop.tui.views.styled_line import Line, Span, make_line


def last_hold(index: SnapshotIndex, lock_id: int, tid: int = 0) -> Event | None:
    """The hold of a lock that ended last, of those that are recorded; ``tid`` 0: of any thread."""
    holds = [
        event
        for event in index.snapshot.events
        if event.lock == lock_id and event.hold_s is not None and tid in (0, event.tid)
    ]
    return min(holds, key=seconds_since_end, default=None)


def seconds_since_end(event: Event) -> float:
    """How many seconds ago the wait and the hold of an event ended."""
    return event.ago_s - event.wait_s - (event.hold_s or 0.0)


def former_holder(
    index: SnapshotIndex, tid: int, lock_id: int, is_live: bool = True
) -> Iterator[Line]:
    """How sure it is that a thread holds a lock, or its last hold; nothing while it holds it.

    Args:
        index: the snapshot.
        tid: the thread.
        lock_id: the lock.
        is_live: whether newer snapshots replace this one.
    """
    lock = index.locks.get(lock_id)
    if lock is None or tid in lock.holders or index.held(tid, lock_id) is not None:
        return
    name = (index.lock_name(lock_id), "strong")
    named = index.holder_of(lock)
    certainty = named.certainty if named is not None and tid in named.tids else None
    if certainty is Certainty.PROBABLE:
        yield make_line((f" {index.thread_name(tid)} probably holds ", "waiting"), name)
        return
    if certainty is Certainty.LIKELY:
        only = f" is not known; {index.thread_name(tid)} is {named.why}" if named else ""
        yield make_line((" The holder of ", "waiting"), name, (only, "waiting"))
        return
    event = last_hold(index, lock_id, tid)
    if event is None and not lock.holders and lock.kind not in HELD_KINDS:
        yield _doubtful_line(index, tid, lock)
    else:
        yield _release_line(index, tid, lock, event)
    if is_live:
        yield make_line(
            "   ", ("p", "key"), " pauses: then Enter goes to the holder on the screen."
        )


def _doubtful_line(index: SnapshotIndex, tid: int, lock: Lock) -> Line:
    """The line about a thread that only its code gave away as the holder."""
    name = (index.lock_name(lock.id), "strong")
    if earlier := earlier_holder.phrase(index, lock):
        return make_line(
            (" The holder of ", "waiting"), name, (f" is not known; {earlier}", "waiting")
        )
    named = index.holder_of(lock)
    now = f"{named.adverb}{index.holders(named.tids, lock.id)}" if named else "nobody"
    was = f" {index.thread_name(tid)} was named as the holder of "
    return make_line((was, "waiting"), name, (f"; now {now} is", "waiting"))


def _release_line(index: SnapshotIndex, tid: int, lock: Lock, event: Event | None) -> Line:
    spans: list[Span | str] = [
        (f" {index.thread_name(tid)} has let go of ", "waiting"),
        (index.lock_name(lock.id), "strong"),
    ]
    if event is not None:
        ago = duration(seconds_since_end(event))
        spans.append(f": held it for {duration(event.hold_s)}, until {ago} ago")
        if location := index.stack_top(event.stack) or index.site(event.site):
            spans += [", taken at ", (location, "where")]
    return make_line(*spans)
