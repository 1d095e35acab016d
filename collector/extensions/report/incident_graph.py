"""The wait-for graph of a report: from threads to the locks that they wait for, to the holders."""

from __future__ import annotations

from itertools import islice

from locktop.collector.analysis import deadlock_report
from locktop.collector.model import BlockingTree, BlockingWaiter, RootKind
from locktop.collector.render.graph.deadlock_graph import Arrow, Graph, GraphNode, Part, graph
from locktop.collector.render.text.context import ReportContext
from locktop.collector.render.words import (
    activity,
    blocking,
    hang,
    probable_holder,
    readers,
    units,
)
from locktop.collector.render.words.blocking import BlockingRow
from locktop.collector.render.words.foreign_code import innermost_program_frame
from locktop.collector.render.words.source_location import short_location
from locktop.collector.sanitize import clean

#: More rows of the blocking tree make no drawing that anybody reads.
_MAX_ROWS = 30
#: Characters of a line.
_LONGEST = 60


def incident_graph(context: ReportContext, tree: BlockingTree) -> Graph:
    """Return the graph of the deadlocks, else that of the blocking tree.

    Args:
        context: the snapshot with its names.
        tree: its blocking tree.
    """
    snapshot = context.snapshot
    if snapshot.deadlocks and not hang.is_the_finding(snapshot):
        return graph(deadlock_report.reports(snapshot))
    return _TreeGraph(context, tree).graph()


class _TreeGraph:
    """Collects the nodes and arrows of a blocking tree."""

    def __init__(self, context: ReportContext, tree: BlockingTree) -> None:
        self._context = context
        self._tree = tree
        self._nodes: dict[str, GraphNode] = {}
        self._arrows: dict[Arrow, None] = {}

    def graph(self) -> Graph:
        rows = blocking.rows(self._tree, self._context.threads, blocking.is_open_at_first)
        for row in islice(rows, _MAX_ROWS):
            if row.root is not None:
                if row.root.kind is RootKind.HOLDER:
                    self._add_thread(row.root.tids[0], Part.CIRCLE)
            elif row.waiters:
                self._add_row(row)
        if left := sum(1 for _ in rows):
            self._add(GraphNode("more", Part.BEHIND, (f"and {left} more",)))
        return Graph("", tuple(self._nodes.values()), tuple(self._arrows))

    def _add_row(self, row: BlockingRow) -> None:
        first = row.waiters[0]
        if len(row.waiters) > 1:
            key = f"fan_{first.tid}"
            self._add(GraphNode(key, Part.BEHIND, (f"{len(row.waiters)} threads", row.name)))
        else:
            key = self._add_thread(first.tid, Part.BEHIND)
        lock = self._add_lock(first.lock)
        self._arrows[Arrow(key, lock, self._wait_words(row.waiters))] = None
        if first.holder:
            holder = self._add_thread(first.holder, Part.BEHIND)
            self._arrows[Arrow(lock, holder, self._hold_words(first))] = None
        elif first.lock in self._context.locks:
            for tid in probable_holder.tids(self._context.locks[first.lock]):
                holder = self._add_thread(tid, Part.BEHIND)
                self._arrows[Arrow(lock, holder, (probable_holder.PROBABLY,))] = None

    def _wait_words(self, waiters: tuple[BlockingWaiter, ...]) -> tuple[str, ...]:
        waits = [self._context.threads[waiter.tid].waiting_for for waiter in waiters]
        longest = max((wait for wait in waits if wait), key=lambda wait: wait.duration_s)
        up_to = "up to " if len(waiters) > 1 and not longest.is_lower_bound else ""
        lasts = units.lasting(longest.duration_s, longest.is_lower_bound)
        frame = innermost_program_frame(self._context.index.stack(longest.stack))
        where = short_location(frame) if frame is not None else self._location(longest.site)
        return _lines(f"waits {up_to}{lasts}", where)

    def _hold_words(self, waiter: BlockingWaiter) -> tuple[str, ...]:
        holder = self._context.threads.get(waiter.holder)
        holds = holder.holds if holder is not None else ()
        held = next((held for held in holds if held.lock == waiter.lock), None)
        others = f"(and by {len(waiter.others)} more)" if waiter.others else ""
        if held is None:
            return _lines("held by", others)
        return _lines(f"held{activity.held_for(held)} by", others, self._location(held.site))

    def _location(self, site: int) -> str:
        frame = self._context.snapshot.sites.get(site)
        return short_location(frame) if frame is not None else ""

    def _add_thread(self, tid: int, part: Part) -> str:
        key = f"thread_{tid}"
        thread = self._context.threads.get(tid)
        if key not in self._nodes:
            now = thread.now if thread is not None else None
            lock_now = next(
                (
                    lock.holder_activity
                    for lock in self._context.snapshot.locks
                    if lock.holder_activity is not None and lock.holder_activity.tid == tid
                ),
                None,
            )
            name = thread.name if thread is not None else ""
            doing = activity.doing(lock_now or now, tid)
            self._add(GraphNode(key, part, _lines(name, f"thread {tid}", doing)))
        return key

    def _add_lock(self, lock: int) -> str:
        key = f"lock_{lock}"
        if key not in self._nodes:
            counted = readers.held_by(self._context.locks.get(lock)).removeprefix(", ")
            self._add(GraphNode(key, Part.LOCK, _lines(self._context.lock(lock), counted)))
        return key

    def _add(self, node: GraphNode) -> None:
        self._nodes.setdefault(node.key, node)


def _lines(*texts: str) -> tuple[str, ...]:
    return tuple(clean(text, _LONGEST) for text in texts if text)
