"""Potential deadlocks as plain text: locks that were taken in different orders."""

from __future__ import annotations

from collections.abc import Iterator

from locktop.collector.analysis import lock_classes
from locktop.collector.model import Confidence, OrderCycle, OrderEdge, Snapshot
from locktop.collector.render.words import lock_order
from locktop.collector.render.words.lock_kind import name_with_kind
from locktop.collector.render.words.source_location import full_location
from locktop.collector.render.words.units import counted
from locktop.collector.sanitize import clean

_MAX_CYCLES = 10
_MAX_FRAMES = 30
_LONGEST = 1000


def likely(snapshot: Snapshot) -> list[OrderCycle]:
    """Return those of at least medium confidence: a check must not fail because of a guess."""
    return [cycle for cycle in snapshot.lock_order if cycle.confidence is not Confidence.LOW]


def headline(snapshot: Snapshot) -> str:
    """Return in one line of which locks the first of likely() is, and how many more there are."""
    names, cycles = _Names(snapshot), likely(snapshot)
    who = f"{snapshot.process.comm} {snapshot.process.pid}"
    more = f", and {len(cycles) - 1} more" if len(cycles) > 1 else ""
    locks = ", ".join(cycles[0].classes or map(names.lock, cycles[0].locks))
    how = f"{cycles[0].confidence} confidence"
    return clean(
        f"potential deadlock: {who} took in different orders: {locks} ({how}){more}", _LONGEST
    )


def lines(snapshot: Snapshot) -> Iterator[str]:
    """Yield those that are no certain deadlock yet, with their stacks; the lines are not wrapped.

    Without such a potential deadlock there is no line.
    """
    cycles, left_out = lock_order.not_there(snapshot), list(lock_order.left_out(snapshot))
    if cycles or left_out:
        yield f"POTENTIAL DEADLOCKS, {lock_order.NEED_NOT}"
    names = _Names(snapshot)
    for cycle in cycles[:_MAX_CYCLES]:
        yield from _cycle(snapshot, names, cycle)
    if len(cycles) > _MAX_CYCLES:
        yield f"  and {len(cycles) - _MAX_CYCLES} more"
    for sentence in left_out:
        yield f"  {sentence}"


def _cycle(snapshot: Snapshot, names: _Names, cycle: OrderCycle) -> Iterator[str]:
    yield f"  {lock_order.cycle(cycle)}"
    for edge in cycle.edges:
        yield f"    {names.edge(edge)}"
        frames = snapshot.stacks.get(edge.stack, ())
        for frame in frames[:_MAX_FRAMES]:
            yield f"        {full_location(frame)}{' (inlined)' * frame.inlined}"
        if len(frames) > _MAX_FRAMES:
            yield f"        and {counted(len(frames) - _MAX_FRAMES, 'frame')} more"
        if edge.site in snapshot.sites:
            where = full_location(snapshot.sites[edge.site])
            yield f"      {names.lock(edge.from_)} was taken in {where}"
    if cycle.ways:
        yield f"    {lock_order.ways(cycle)}"


class _Names:
    def __init__(self, snapshot: Snapshot) -> None:
        self._locks = {lock.id: lock for lock in snapshot.locks}
        self._class_of = lock_classes.classes_by_lock(lock_classes.find(snapshot.locks))
        self._threads = {thread.tid: thread.name for thread in snapshot.threads if thread.name}

    def lock(self, id_: int) -> str:
        entry = self._locks.get(id_)
        if entry is None:
            return f"lock {id_}"
        name = lock_classes.single_name(entry, self._class_of.get(id_))
        return name_with_kind(entry.kind, name)

    def edge(self, edge: OrderEdge) -> str:
        name = self._threads.get(edge.tid)
        who = f"thread {edge.tid} ({name})" if name else f"thread {edge.tid}"
        wanted, held = (
            self.lock(lock) + (", to read," if shared else "")
            for lock, shared in ((edge.to, edge.shared), (edge.from_, edge.from_shared))
        )
        return f"{who} wanted {wanted} while it held {held}"
