"""Potential deadlocks as plain text: locks that were taken in different orders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from locktop.collector.analysis import lock_classes
from locktop.collector.export.places import place
from locktop.collector.model import OrderCycle, OrderEdge, Snapshot
from locktop.collector.sanitize import clean

_MOST_CYCLES = 10
_MOST_FRAMES = 30
_LONGEST = 1000


def headline(snapshot: Snapshot, cycles: Sequence[OrderCycle]) -> str:
    """Return in one line how many there are and of which locks the first is."""
    names = _Names(snapshot)
    who = f"{snapshot.process.comm} {snapshot.process.pid}"
    more = f", and {len(cycles) - 1} more" if len(cycles) > 1 else ""
    locks = ", ".join(names.lock(lock) for lock in cycles[0].locks)
    return clean(f"potential deadlock: {who} takes {locks} in different orders{more}", _LONGEST)


def lines(snapshot: Snapshot, cycles: Sequence[OrderCycle]) -> Iterator[str]:
    """Yield the cycles with their stacks; the lines are not wrapped."""
    names = _Names(snapshot)
    yield "POTENTIAL DEADLOCKS, none of which need ever come about"
    for cycle in cycles[:_MOST_CYCLES]:
        yield f"  {len(cycle.edges)} locks taken in different orders"
        for edge in cycle.edges:
            yield f"    {names.edge(edge)}"
            yield from _stack(snapshot, edge.stack)
    if len(cycles) > _MOST_CYCLES:
        yield f"  and {len(cycles) - _MOST_CYCLES} more"


def _stack(snapshot: Snapshot, stack: int) -> Iterator[str]:
    for frame in snapshot.stacks.get(stack, ())[:_MOST_FRAMES]:
        yield f"        {place(frame)}{' (inlined)' * frame.inlined}"


class _Names:
    def __init__(self, snapshot: Snapshot) -> None:
        self._locks = {lock.id: lock for lock in snapshot.locks}
        self._class_of = lock_classes.by_lock(lock_classes.fold(snapshot.locks))
        self._threads = {thread.tid: thread.name for thread in snapshot.threads if thread.name}

    def lock(self, id_: int) -> str:
        found = self._locks.get(id_)
        if found is None:
            return f"lock {id_}"
        name = lock_classes.single_name(found, self._class_of.get(id_))
        return name if name.startswith(found.kind) else f"{found.kind} {name}"

    def edge(self, edge: OrderEdge) -> str:
        name = self._threads.get(edge.tid)
        who = f"{name} ({edge.tid})" if name else f"thread {edge.tid}"
        return f"{who} wanted {self.lock(edge.to)} while it held {self.lock(edge.from_)}"
