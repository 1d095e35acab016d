"""The deadlock check of both sources: two readings, and a query of the kernel in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

from locktop.collector.analysis import deadlocks, wait_for_graph
from locktop.collector.analysis.wait_for_graph import WaitForGraph
from locktop.collector.model import Deadlock

#: Queries the kernel about the suspects and the deadlocks of the first reading. Returns the
#: remaining suspects. Also returns the ids of awake threads, and of living threads that should have
#: ended.
KernelQuery = Callable[[WaitForGraph, Sequence[Deadlock]], tuple[WaitForGraph, Set[int]]]


def check(
    first: WaitForGraph,
    query_kernel: KernelQuery,
    read_again: Callable[[WaitForGraph], WaitForGraph],
    doubt: str = "",
) -> tuple[Deadlock, ...]:
    """Return the deadlocks that two readings show alike, the oldest first.

    Args:
        first: the graph of the first reading.
        query_kernel: called between the readings, only if the first reading shows a deadlock.
        read_again: given the suspects, returns the graph of the second reading.
        doubt: why no deadlock of this process is certain; "" without such a reason.
    """
    suspected = deadlocks.find(first)
    suspects = wait_for_graph.related_to(first, suspected)
    if not suspects.blocked:
        return ()
    suspects, awake = query_kernel(suspects, suspected)
    return deadlocks.find_confirmed(suspects, read_again(suspects), awake, doubt)
