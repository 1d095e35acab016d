"""Potential deadlocks in sentences, for the report and the screen."""

from __future__ import annotations

from collections.abc import Iterator

from locktop.collector.model import OrderCycle, Snapshot

#: The end of the title.
NEED_NOT = "which may never happen"


def cycle(found: OrderCycle) -> str:
    """Return the number of locks of a cycle, its confidence, and what is not known."""
    why = f": {found.why}" if found.why else ""
    count = len(found.edges)
    return (
        f"{count} lock{'s' * (count != 1)} taken in different orders,"
        f" {found.confidence} confidence{why}"
    )


def ways(found: OrderCycle) -> str:
    """Return how many other stacks lead to the cycle, "" if none do."""
    if not found.ways:
        return ""
    count = f"{len(found.ways)} or more" if found.ways_left_out else f"{len(found.ways)}"
    return f"the same in {count} other way{'s' * (count != '1')}, by other stacks"


def not_there(snapshot: Snapshot) -> list[OrderCycle]:
    """Return the cycles without a certain deadlock of the same locks now."""
    there = [
        {edge.waits_for for edge in found.cycle} for found in snapshot.deadlocks if found.certain
    ]
    return [found for found in snapshot.lock_order if set(found.locks) not in there]


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
