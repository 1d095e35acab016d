"""A section of the text report: which threads and locks the present waits lead to."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from locktop.collector.analysis import blocking_tree
from locktop.collector.model import BlockingRoot, BlockingTree, Held, RootKind
from locktop.collector.render.text.context import ReportContext
from locktop.collector.render.words import (
    activity,
    blocking,
    probable_holder,
    readers,
    units,
)
from locktop.collector.render.words.blocking import BlockingRow
from locktop.collector.render.words.source_location import full_location

_MAX_ROOTS = 5
#: Rows below one root.
_MAX_ROWS = 12
#: No deeper indentation.
_DEEPEST = 8


def roots(context: ReportContext) -> Iterator[str]:
    """Yield the roots with most waiting, each with the threads below it.

    Other sections have the roots of which no waiter blocks a thread itself, and the deadlocks.
    """
    tree = blocking_tree.find(context.snapshot)
    reported = {edge.tid for deadlock in context.snapshot.deadlocks for edge in deadlock.cycle}
    deep_roots = [root for root in tree.roots if root.depth > 1 and reported.isdisjoint(root.tids)]
    if deep_roots:
        yield from ("", f"BLOCKING {context.when}, the most waiting first")
    for root in deep_roots[:_MAX_ROOTS]:
        yield from _root(context, tree, root)
    if len(deep_roots) > _MAX_ROOTS:
        yield f"  and {len(deep_roots) - _MAX_ROOTS} more"


def _root(context: ReportContext, tree: BlockingTree, root: BlockingRoot) -> Iterator[str]:
    yield f"  {cause(context, root)}"
    now = blocking.activity_of(root, context.locks, context.threads)
    if root.kind is RootKind.HOLDER and (doing := activity.doing(now, root.tids[0])):
        yield f"    now {doing}"
    yield f"    {blocking.behind_words(root.behind)}; the longest waits {_longest(context, root)}"
    rows = blocking.root_rows(tree, root, context.threads)
    next(rows)  # the root itself
    for row in islice(rows, _MAX_ROWS):
        yield _waiters(context, row)
    left = sum(1 for _ in rows)
    if left:
        yield f"      and {left} more"


def cause(context: ReportContext, root: BlockingRoot) -> str:
    """Return who holds which lock since when and where, or who waits for whom, in one line."""
    locks = context.lock(root.lock)
    if len(root.locks) > 1:
        locks += f" and {units.counted(len(root.locks) - 1, 'other lock')}"
    if root.kind is RootKind.LOCK:
        takers = context.taken_units(root.lock)
        lock = context.locks.get(root.lock)
        if lock is not None and (probable := probable_holder.tids(lock)):
            names = context.threads_named(probable)
            return f"{locks}: {probable_holder.phrase(lock, names, context.snapshot.sites)}"
        likely = context.likely_holder(lock) if lock is not None else ""
        if by_readers := readers.held_by(lock):
            return f"{locks}{by_readers}"
        return f"{locks}: {takers}" if takers else f"{locks}, whose holder is not known{likely}"
    if root.kind is RootKind.CYCLE:
        selves = "wait for each other" if len(root.tids) > 1 else "waits for itself"
        return f"{context.threads_named(root.tids)} {selves}"
    held = _longest_held(context, root)
    taken = context.snapshot.sites.get(held.site) if held is not None else None
    return (
        f"{context.thread(root.tids[0])} holds {locks}"
        + activity.held_for(held)
        + (f", taken in {full_location(taken)}" if taken is not None else "")
    )


def _longest_held(context: ReportContext, root: BlockingRoot) -> Held | None:
    thread = context.threads.get(root.tids[0])
    holds = thread.holds if thread is not None else ()
    return next((held for held in holds if held.lock == root.lock), None)


def _longest(context: ReportContext, root: BlockingRoot) -> str:
    wait = context.threads[root.behind.longest].waiting_for
    return units.lasting(wait.duration_s, wait.is_lower_bound) if wait is not None else "-"


def _waiters(context: ReportContext, row: BlockingRow) -> str:
    """Return one thread, or the threads that wait alike, with their lock and what is behind."""
    first = row.waiters[0]
    many = len(row.waiters) > 1
    who = f"{len(row.waiters)} threads ({row.name})" if many else context.thread(first.tid)
    waits = [context.threads[waiter.tid].waiting_for for waiter in row.waiters]
    longest = max((wait for wait in waits if wait is not None), key=lambda wait: wait.duration_s)
    since = units.lasting(longest.duration_s, longest.is_lower_bound)
    up_to = "up to " if many and not longest.is_lower_bound else ""
    others = blocking.also_words([context.thread(tid) for tid in first.others])
    behind = blocking.behind_words(first.behind) if first.behind.threads and not many else ""
    indent = "  " * min(row.depth + 2, _DEEPEST)
    said = ", ".join(filter(None, [f"{context.lock(first.lock)}", others]))
    return "; ".join(filter(None, [f"{indent}{who} for {up_to}{since}: {said}", behind]))
