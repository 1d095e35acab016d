"""Potential deadlocks in sentences, for the report and the screen."""

from __future__ import annotations

from collections.abc import Iterator

from locktop.collector.model import OrderCycle, Snapshot

#: The end of the title.
NEED_NOT = "which may never happen"


def cycle(order_cycle: OrderCycle) -> str:
    """Return the number of locks of a cycle, its confidence, and what is not known."""
    why = f": {order_cycle.why}" if order_cycle.why else ""
    count = len(order_cycle.edges)
    return (
        f"{count} lock{'s' * (count != 1)} taken in different orders,"
        f" {order_cycle.confidence} confidence{why}"
    )


def ways(order_cycle: OrderCycle) -> str:
    """Return how many other stacks lead to the cycle, "" if none do."""
    if not order_cycle.ways:
        return ""
    count = (
        f"{len(order_cycle.ways)} or more"
        if order_cycle.ways_left_out
        else f"{len(order_cycle.ways)}"
    )
    return f"the same in {count} other way{'s' * (count != '1')}, by other stacks"


def not_there(snapshot: Snapshot) -> list[OrderCycle]:
    """Return the cycles without a certain deadlock of the same locks now."""
    there = [
        {edge.waits_for for edge in deadlock.cycle}
        for deadlock in snapshot.deadlocks
        if deadlock.certain
    ]
    return [order for order in snapshot.lock_order if set(order.locks) not in there]


def left_out(snapshot: Snapshot) -> Iterator[str]:
    """Yield how many cycles are left out or may be missing, and why."""
    suppressed, unproven = snapshot.lock_order_suppressed, snapshot.lock_order_unproven
    if suppressed:
        yield f"{suppressed} left out by a suppression file"
    if unproven:
        yield (
            f"{unproven} left out, because their memory may have had other locks in between"
            " (a run with LOCKTOP_ORDER=mark decides)"
        )
    yield from missing(snapshot)


def missing(snapshot: Snapshot) -> Iterator[str]:
    """Yield why potential deadlocks may be missing that the threads' lock orders show."""
    if snapshot.lock_orders_left_out:
        yield "some lock orders found no room: potential deadlocks may be missing"
    if snapshot.lock_order_search_cut:
        yield "the search ended at its limit: further potential deadlocks may be missing"


def unknown(snapshot: Snapshot) -> Iterator[str]:
    """Yield why locktop cannot tell that there is no potential deadlock."""
    if snapshot.is_sampled:
        yield "lock orders are not known without the library"
    elif snapshot.level in ("dormant", "counting"):
        yield f"lock orders are not recorded at level {snapshot.level}"
    yield from missing(snapshot)
