"""The sentence about children of the watched process whose threads wait."""

from __future__ import annotations

from locktop.collector.model import ChildWaits, Snapshot
from locktop.collector.render.words.units import counted, lasting


def sentence(snapshot: Snapshot) -> str:
    """Return which child has threads that wait, and how to watch it; "" for none.

    "prog (4711), a child, has 3 threads that wait for at least 60 s: locktop -p 4711"
    """
    if not snapshot.waiting_children:
        return ""
    first, *others = snapshot.waiting_children
    more = f", and {len(others)} more" if others else ""
    return f"{_who(first)}: locktop -p {first.pid}{more}"


def _who(child: ChildWaits) -> str:
    verb = "wait" if child.waiting > 1 else "waits"
    since = f" for {lasting(child.longest_s, True)}" if child.longest_s else ""
    threads = counted(child.waiting, "thread")
    return f"{child.comm} ({child.pid}), a child, has {threads} that {verb}{since}"
