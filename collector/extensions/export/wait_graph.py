"""The whole wait-for graph of a snapshot: each thread that waits, for which lock, held by whom."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from locktop.collector.model import Lock, Snapshot, Thread
from locktop.collector.render.files import encoded
from locktop.collector.render.graph import dot, mermaid
from locktop.collector.render.graph.deadlock_graph import Arrow, Graph, GraphNode, Part
from locktop.collector.render.words import probable_holder, readers
from locktop.collector.render.words.lock_kind import name_with_kind
from locktop.collector.render.words.units import lasting
from locktop.collector.sanitize import clean

if TYPE_CHECKING:
    from locktop.collector.extensions.export.export_input import ExportInput

#: More waiters of one lock make no drawing that anybody reads: the longest waits are drawn.
_MAX_WAITERS = 30
_LONGEST = 80


def render_dot(export_input: ExportInput) -> Iterator[bytes]:
    """Yield the graph for Graphviz."""
    yield encoded(dot.render_graph(wait_graph(export_input.snapshot, export_input.with_idle)))


def render_mermaid(export_input: ExportInput) -> Iterator[bytes]:
    """Yield the graph as a Mermaid flowchart."""
    yield encoded(mermaid.render_graph(wait_graph(export_input.snapshot, export_input.with_idle)))


def wait_graph(snapshot: Snapshot, with_idle: bool = False) -> Graph:
    """Return the graph. Threads of a certain deadlock are marked.

    Args:
        snapshot: the scan.
        with_idle: also threads that wait for work.
    """
    return _WaitGraphBuilder(snapshot).build(with_idle)


class _WaitGraphBuilder:
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._threads = {thread.tid: thread for thread in snapshot.threads}
        self._elsewhere = {thread.tid: thread for thread in snapshot.threads_elsewhere}
        self._stuck = {
            edge.tid
            for deadlock in snapshot.deadlocks
            if deadlock.certain
            for edge in deadlock.cycle
        }
        self._nodes: dict[str, GraphNode] = {}
        self._arrows: dict[Arrow, None] = {}

    def build(self, with_idle: bool) -> Graph:
        locks = {lock.id: lock for lock in self._snapshot.locks}
        waiters: dict[int, list[Thread]] = {}
        for thread in self._snapshot.threads:
            wait = thread.waiting_for
            if wait is not None and (with_idle or not wait.idle):
                waiters.setdefault(wait.lock, []).append(thread)
        for lock_id, threads in waiters.items():
            self._add_lock(lock_id, locks.get(lock_id), threads)
        process = self._snapshot.process
        title = f"{process.comm} {process.pid}, {self._snapshot.taken_at}"
        title += "" if waiters else ": no thread waits for a lock"
        return Graph(clean(title, 1000), tuple(self._nodes.values()), tuple(self._arrows))

    def _add_lock(self, lock_id: int, lock: Lock | None, threads: list[Thread]) -> None:
        key = f"lock_{lock_id}"
        name = name_with_kind(lock.kind, lock.name) if lock is not None else f"lock {lock_id}"
        counted_readers = readers.held_by(lock).removeprefix(", ")
        self._nodes[key] = GraphNode(key, Part.LOCK, _lines(name, counted_readers))
        threads.sort(key=self._order)
        for thread in threads[:_MAX_WAITERS]:
            wait = thread.waiting_for
            if wait is not None:
                self._add_thread(thread.tid)
                words = f"waits {lasting(wait.duration_s, wait.is_lower_bound)}"
                self._arrows[Arrow(f"thread_{thread.tid}", key, _lines(words))] = None
        left_out = len(threads) - _MAX_WAITERS
        if left_out > 0:
            more = f"more_{lock_id}"
            self._nodes[more] = GraphNode(more, Part.BEHIND, (f"{left_out} threads more",))
            self._arrows[Arrow(more, key, ("wait",))] = None
        wait = threads[0].waiting_for
        holders = lock.holders if lock is not None else wait.holders if wait is not None else ()
        held = "held by"
        if not holders and lock is not None:
            holders, held = probable_holder.tids(lock), probable_holder.PROBABLY
        for tid in holders:
            self._add_thread(tid)
            self._arrows[Arrow(key, f"thread_{tid}", (held,))] = None

    def _order(self, thread: Thread) -> tuple[bool, float, int]:
        wait = thread.waiting_for
        waited_s = wait.duration_s if wait is not None else 0.0
        return thread.tid not in self._stuck, -waited_s, thread.tid

    def _add_thread(self, tid: int) -> None:
        thread = self._threads.get(tid)
        elsewhere = self._elsewhere.get(tid)
        name = thread.name if thread is not None else elsewhere.name if elsewhere else ""
        lines = [name, f"thread {tid}"]
        if elsewhere is not None:
            lines.append(f"in process {elsewhere.pid}")
        part = Part.CIRCLE if tid in self._stuck else Part.BEHIND
        key = f"thread_{tid}"
        self._nodes[key] = GraphNode(key, part, _lines(*lines))


def _lines(*texts: str) -> tuple[str, ...]:
    return tuple(clean(text, _LONGEST) for text in texts if text)
