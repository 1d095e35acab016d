"""Everything about the potential deadlocks, as a page to read and to scroll: which locks each
thread took in which order, and where. In no colour of alarm: nothing hangs because of them."""

from __future__ import annotations

from collections.abc import Iterator

from locktop.collector.format import deadlock, lock_order
from locktop.collector.model import LockName, OrderCycle, OrderEdge
from locktop.tui.views.detail_parts import blank, heading, labelled, stack_of
from locktop.tui.views.snapshot_index import SnapshotIndex
from locktop.tui.views.styled_line import Line, say

#: The surest come first; a saved picture has all.
_MAX_CYCLES = 20


def has_orders(picture: SnapshotIndex) -> bool:
    """Whether there is anything to say."""
    snapshot = picture.snapshot
    return bool(lock_order.not_there(snapshot) or list(lock_order.left_out(snapshot)))


def order_details(picture: SnapshotIndex) -> Iterator[Line]:
    """The lines of the details panel for all potential deadlocks."""
    found = lock_order.not_there(picture.snapshot)
    yield heading("Potential deadlocks", f", {lock_order.NEED_NOT}")
    for cycle in found[:_MAX_CYCLES]:
        yield blank()
        yield from _cycle(picture, cycle)
    if len(found) > _MAX_CYCLES:
        yield blank()
        yield say((f" and {len(found) - _MAX_CYCLES} more: w saves them all", "dim"))
    for sentence in lock_order.left_out(picture.snapshot):
        yield blank()
        yield say((f" {sentence}", "dim"))


def _cycle(picture: SnapshotIndex, cycle: OrderCycle) -> Iterator[Line]:
    yield say((f" {lock_order.cycle(cycle)}", "title"))
    if cycle.classes:
        yield labelled("classes", ", ".join(cycle.classes))
    for edge in cycle.edges:
        yield blank()
        yield from _edge(picture, edge)


def _edge(picture: SnapshotIndex, edge: OrderEdge) -> Iterator[Line]:
    thread = picture.threads.get(edge.tid)
    if thread is not None and thread.name:
        yield labelled("thread", (thread.name, "strong"), f" ({edge.tid})")
    else:
        yield labelled("thread", (str(edge.tid), "strong"))
    yield labelled("held", (_lock(picture, edge.from_, edge.from_shared), "strong"))
    if edge.site:
        yield labelled("", "taken in ", (picture.site(edge.site), "where"))
    yield labelled("wanted", (_lock(picture, edge.to, edge.shared), "strong"))
    yield from stack_of(picture, edge.stack, 0)


def _lock(picture: SnapshotIndex, id_: int, shared: bool) -> str:
    found = picture.locks.get(id_)
    kind = found.kind if found is not None else None
    return deadlock.lock(LockName(id_, kind, picture.lock_name(id_))) + " (to read)" * shared
