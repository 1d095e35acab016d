"""What there is to say of potential deadlocks, in sentences: the page and the screen say the
same."""

from __future__ import annotations

from collections.abc import Iterator

from locktop.collector.model import OrderCycle, Snapshot

#: What follows their title.
NEED_NOT = "none of which need ever come about"


def cycle(found: OrderCycle) -> str:
    """Return how many locks it is of, how sure it is, and what is not known."""
    why = f": {found.why}" if found.why else ""
    count = len(found.edges)
    return (
        f"{count} lock{'s' * (count != 1)} taken in different orders,"
        f" {found.confidence} confidence{why}"
    )


def not_there(snapshot: Snapshot) -> list[OrderCycle]:
    """Return those of which no deadlock is there now: what has come about is told as such."""
    there = [
        {edge.waits_for for edge in found.cycle} for found in snapshot.deadlocks if found.certain
    ]
    return [found for found in snapshot.lock_order if set(found.locks) not in there]


def left_out(snapshot: Snapshot) -> Iterator[str]:
    """Yield how many are not told, and why."""
    suppressed, unproven = snapshot.lock_order_suppressed, snapshot.lock_order_unproven
    if suppressed:
        yield f"{suppressed} left out, as a suppression file says"
    if unproven:
        yield (
            f"{unproven} left out, for other locks may have lain in their memory in between:"
            " a run with LOCKTOP_ORDER=mark tells"
        )
