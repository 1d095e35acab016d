"""The finding of ``locktop check``, in each of its formats."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from locktop.collector.analysis.deadlock_report import reports
from locktop.collector.model import Frame, Lock, Snapshot, Thread, Wait
from locktop.collector.render.documents import deadlock_json
from locktop.collector.render.documents.snapshot_codec import document as snapshot_document
from locktop.collector.render.files import encoded
from locktop.collector.render.graph import dot, mermaid
from locktop.collector.render.text import deadlock, lock_order
from locktop.collector.render.words import (
    child_waits,
    hang,
    present_waits,
    readers,
    unit_takers,
    verdict,
)
from locktop.collector.render.words import lock_order as order_format
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.render.words.source_location import full_location
from locktop.collector.render.words.units import counted, lasting
from locktop.collector.render.words.wrap import wrapped

#: Keys of a snapshot that are part of the finding if potential deadlocks count.
_ORDER_KEYS = (
    "lock_order",
    "lock_order_suppressed",
    "lock_order_unproven",
    "lock_orders_left_out",
    "lock_order_search_cut",
)
_MAX_WAITS = 20
_MAX_FRAMES = 30
#: Columns of text that goes to a file or a pipe.
_WIDTH = 100


def render_text(snapshot: Snapshot, potential: bool, width: int) -> bytes:
    """Return the finding as text: the answer, then a report of each deadlock."""
    return encoded("".join(f"{line}\n" for line in lines(snapshot, potential, width)))


def render_line(snapshot: Snapshot, potential: bool, width: int) -> bytes:
    """Return the first line of the text, the answer."""
    return encoded(f"{lines(snapshot, potential, width)[0]}\n")


def render_json(snapshot: Snapshot, potential: bool) -> bytes:
    """Return the finding as a JSON object, see document()."""
    return encoded(json.dumps(document(snapshot, potential), indent=1) + "\n")


def render_dot(snapshot: Snapshot) -> bytes:
    """Return the cycles as a graph for Graphviz."""
    return encoded(dot.render(reports(snapshot)))


def render_mermaid(snapshot: Snapshot) -> bytes:
    """Return the cycles as a graph for Mermaid."""
    return encoded(mermaid.render(reports(snapshot)))


def lines(snapshot: Snapshot, potential: bool = False, width: int = _WIDTH) -> list[str]:
    """Return the finding in one line, then a report of each deadlock.

    Without a deadlock the present waits follow: a line for each lock with its holder, then the long
    waits for locks whose holders are not known.

    With ``potential`` the potential deadlocks follow.
    """
    lines, index = [_finding(snapshot, potential)], SnapshotIndex(snapshot)
    if of_child := child_waits.sentence(snapshot):
        lines += wrapped(f"  {of_child}", width)
    taken = list(unit_takers.lines(snapshot))
    if taken:  # they explain the deadlocks that follow
        lines += ["", *(part for line in taken for part in wrapped(line, width))]
    for report in () if hang.is_the_finding(snapshot) else reports(snapshot):
        lines += ["", *(part for line in deadlock.lines(report) for part in wrapped(line, width))]
    if verdict.long_hang(snapshot) is not None:
        lines += ["", *(part for line in hang.lines(snapshot) for part in wrapped(line, width))]
    elif not snapshot.deadlocks:
        if not (potential and lock_order.likely(snapshot)):  # else no verdict precedes them
            lines += [part for line in _present_waits(index) for part in wrapped(line, width)]
        lines += [part for line in _unknown_waits(index) for part in wrapped(line, width)]
    orders = list(lock_order.lines(snapshot)) if potential else []
    if orders:
        lines += ["", *(part for line in orders for part in wrapped(line, width))]
    return lines


def _present_waits(index: SnapshotIndex) -> Iterator[str]:
    """Yield a sentence for each lock that threads wait for.

    The verdict counts the waiters alone. Long waits for a lock for which no thread is named follow
    by themselves.
    """
    listed = {wait.lock for wait in verdict.unknown_waits(index.snapshot)}
    named = {id_ for id_ in listed if id_ in index.locks and index.holder_of(index.locks[id_])}
    for sentence in present_waits.sentences(index.snapshot, listed - named):
        yield f"  {sentence}"


def _unknown_waits(index: SnapshotIndex) -> Iterator[str]:
    """Yield the long waits for locks whose holders are not known, each stack once."""
    snapshot = index.snapshot
    waiters = verdict.unknown_waiters(snapshot)
    groups: dict[tuple[int, int], list[tuple[Thread, Wait]]] = {}
    for thread, wait in waiters[:_MAX_WAITS]:
        groups.setdefault((wait.lock, wait.stack), []).append((thread, wait))
    for (_, stack), alike in groups.items():
        yield ""
        yield from (_wait_line(index, thread, wait) for thread, wait in alike)
        yield from _stack(snapshot.stacks.get(stack, ()))
    for id_ in dict.fromkeys(id_ for id_, _ in groups):
        yield from _holder_stack(index, index.locks.get(id_))
    if len(waiters) > _MAX_WAITS:
        yield from ("", f"  and {counted(len(waiters) - _MAX_WAITS, 'thread')} more")


def _wait_line(index: SnapshotIndex, thread: Thread, wait: Wait) -> str:
    duration, lock = lasting(wait.duration_s, wait.is_lower_bound), index.locks.get(wait.lock)
    name = (lock.name if lock is not None else "") or str(wait.kind)
    if held := readers.held_by(lock):
        name += readers.purpose(wait)
    return f"  {thread.name} ({thread.tid}) waits for {name} for {duration}{held}"


def _holder_stack(index: SnapshotIndex, lock: Lock | None) -> Iterator[str]:
    """Yield the stack of the thread that probably has a lock, if it is known."""
    named = index.holder_of(lock) if lock is not None else None
    now = named.now if named is not None else None
    frames = index.stack(now.stack) if now is not None and not now.stack_age_s else ()
    if lock is not None and named is not None and now is not None and frames:
        who = f"{index.thread_name(now.tid)} ({now.tid})"
        yield from ("", f"  {who}, which {named.adverb}has {lock.name}, is here now")
        yield from _stack(frames)


def _stack(frames: Sequence[Frame]) -> Iterator[str]:
    for number, frame in enumerate(frames[:_MAX_FRAMES]):
        yield f"    {number} {full_location(frame)}{' (inlined)' * frame.inlined}"
    if len(frames) > _MAX_FRAMES:
        yield f"    and {counted(len(frames) - _MAX_FRAMES, 'frame')} more"


def document(snapshot: Snapshot, potential: bool = False) -> dict[str, Any]:
    """Return the finding as a JSON object.

    The deadlocks, and the threads, locks and stacks that they refer to, are as in a snapshot. The
    same holds for long waits for locks whose holders are not known.
    "reports" has one report for each deadlock. With ``potential`` the object has the lock orders of
    a snapshot too.
    """
    whole = snapshot_document(snapshot)
    tids = {edge.tid for group in snapshot.deadlocks for edge in group.cycle}
    locks = set(snapshot.deadlocked)
    stacks = {str(edge.stack) for group in snapshot.deadlocks for edge in group.cycle}
    for thread, wait in verdict.unknown_waiters(snapshot):
        tids.add(thread.tid)
        locks.add(wait.lock)
        stacks.add(str(wait.stack))
    if (whole_hang := verdict.long_hang(snapshot)) is not None:
        tids |= set(whole_hang.tids)
        hung = [thread for thread in snapshot.threads if thread.tid in whole_hang.tids]
        locks |= {thread.waiting_for.lock for thread in hung if thread.waiting_for is not None}
        stacks |= {str(group.stack) for group in hang.groups(snapshot)}
    stacks |= {
        str(lock.holder_activity.stack)
        for lock in snapshot.locks
        if lock.id in locks and lock.holder_activity is not None
    }
    orders = snapshot.lock_order if potential else ()
    locks |= {lock for cycle in orders for lock in cycle.locks}
    edges = [cycle.edges for cycle in orders]
    edges += [way.edges for cycle in orders for way in cycle.ways]
    stacks |= {str(edge.stack) for of_cycle in edges for edge in of_cycle}
    return {
        "format": "locktop.check",
        "version": 1,
        "taken_at": whole["taken_at"],
        "host": whole["host"],
        "process": whole["process"],
        "deadlocked": verdict.is_deadlocked(snapshot),
        "complete": verdict.is_complete(snapshot),
        "finding": _finding(snapshot, potential),
        "deadlocks": whole["deadlocks"],
        "hang": whole["hang"] if verdict.long_hang(snapshot) is not None else None,
        **({key: whole[key] for key in _ORDER_KEYS} if potential else {}),
        "reports": [deadlock_json.document(report) for report in reports(snapshot)],
        "threads": [thread for thread in whole["threads"] if thread["tid"] in tids],
        "locks": [lock for lock in whole["locks"] if lock["id"] in locks],
        "stacks": {key: stack for key, stack in whole["stacks"].items() if str(key) in stacks},
    }


def _finding(snapshot: Snapshot, potential: bool) -> str:
    if not potential or verdict.is_deadlocked(snapshot):
        return verdict.line(snapshot)
    if lock_order.likely(snapshot):
        return lock_order.headline(snapshot)
    return "; ".join([verdict.line(snapshot), *order_format.unknown(snapshot)])
