"""The sentences about children of the watched process that keep it."""

from __future__ import annotations

from locktop.collector.model import AwaitedChild, ChildEvent, ChildWaits, Snapshot
from locktop.collector.render.words.units import counted, lasting


def sentence(snapshot: Snapshot) -> str:
    """Return which child has threads that wait, else for which the process waits; "" for none.

    "prog (4711), a child, has 3 threads that wait for at least 60 s: locktop -p 4711"
    "sh waits for the end of its child sort (4711): locktop why 4710"
    """
    if not snapshot.waiting_children:
        child = snapshot.awaited_child
        return f"{_wait_phrase(child)}: locktop why {snapshot.process.pid}" if child else ""
    first, *others = snapshot.waiting_children
    more = f", and {len(others)} more" if others else ""
    return f"{_who(first)}: locktop -p {first.pid}{more}"


def _who(child: ChildWaits) -> str:
    verb = "wait" if child.waiting > 1 else "waits"
    since = f" for {lasting(child.longest_s, True)}" if child.longest_s else ""
    threads = counted(child.waiting, "thread")
    return f"{child.comm} ({child.pid}), a child, has {threads} that {verb}{since}"


def _wait_phrase(child: AwaitedChild) -> str:
    others = f" or {child.others} more" if child.others else ""
    child_name = f"its child {child.comm} ({child.pid}){others}"
    if child.event is ChildEvent.END:
        return f"{child.waiter} waits for the end of {child_name}"
    if child.event is ChildEvent.OUTPUT:
        return f"{child.waiter} reads from a pipe of {child_name}"
    return f"{child.waiter} writes to a full pipe of {child_name}"
