"""The details of all potential deadlocks: which locks each thread took in which order, and where.

No line has the colour of an alert, for no thread hangs because of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from locktop.collector.model import LockName, OrderCycle, OrderEdge
from locktop.collector.render.words import deadlock, lock_order
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.views.detail_parts import blank, heading, labelled, stack_of
from locktop.tui.views.styled_line import Line, make_line

#: Those of the highest confidence come first. A saved snapshot has all.
_MAX_CYCLES = 20


def has_lock_orders(index: SnapshotIndex) -> bool:
    """Whether there are potential deadlocks, or some were left out."""
    snapshot = index.snapshot
    return bool(lock_order.not_there(snapshot) or list(lock_order.left_out(snapshot)))


def lock_order_details(
    index: SnapshotIndex, cycles: Sequence[OrderCycle] | None = None
) -> Iterator[Line]:
    """The lines of the details panel for ``cycles``; None: for all potential deadlocks."""
    chosen = lock_order.not_there(index.snapshot) if cycles is None else cycles
    yield heading("Potential deadlocks", f", {lock_order.NEED_NOT}")
    for cycle in chosen[:_MAX_CYCLES]:
        yield blank()
        yield from _cycle(index, cycle)
    if len(chosen) > _MAX_CYCLES:
        yield blank()
        yield make_line((f" and {len(chosen) - _MAX_CYCLES} more: w saves them all", "dim"))
    for sentence in lock_order.left_out(index.snapshot):
        yield blank()
        yield make_line((f" {sentence}", "dim"))


def _cycle(index: SnapshotIndex, cycle: OrderCycle) -> Iterator[Line]:
    yield make_line((f" {lock_order.cycle(cycle)}", "title"))
    if cycle.classes:
        yield labelled("classes", ", ".join(cycle.classes))
    for edge in cycle.edges:
        yield blank()
        yield from _edge(index, edge)
    if cycle.ways:
        yield make_line((f" {lock_order.ways(cycle)}", "dim"))


def _edge(index: SnapshotIndex, edge: OrderEdge) -> Iterator[Line]:
    thread = index.threads.get(edge.tid)
    if thread is not None and thread.name:
        yield labelled("thread", (thread.name, "strong"), f" ({edge.tid})")
    else:
        yield labelled("thread", (str(edge.tid), "strong"))
    yield labelled("held", (_lock(index, edge.from_, edge.from_shared), "strong"))
    if edge.site:
        yield labelled("", "taken in ", (index.site(edge.site), "where"))
    yield labelled("wanted", (_lock(index, edge.to, edge.shared), "strong"))
    yield from stack_of(index, edge.stack, 0)


def _lock(index: SnapshotIndex, id_: int, shared: bool) -> str:
    lock = index.locks.get(id_)
    kind = lock.kind if lock is not None else None
    return (
        deadlock.lock(LockName(id=id_, kind=kind, name=index.lock_name(id_)))
        + " (to read)" * shared
    )
