"""The check for deadlocks that both sources share: two readings, and the kernel in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

from locktop.collector.analysis import deadlocks, wait_for_graph
from locktop.collector.analysis.wait_for_graph import WaitForGraph
from locktop.collector.model import Deadlock

#: Given the suspects and what the first reading shows, asks the kernel. Returns the suspects that
#: are left, and the tids of those that were awake, or alive though they should have ended.
AskKernel = Callable[[WaitForGraph, Sequence[Deadlock]], tuple[WaitForGraph, Set[int]]]


def check(
    first: WaitForGraph,
    ask_kernel: AskKernel,
    read_again: Callable[[WaitForGraph], WaitForGraph],
    doubt: str = "",
) -> tuple[Deadlock, ...]:
    """Return the deadlocks that two readings show alike, the oldest first.

    Args:
        first: the graph of the first reading.
        ask_kernel: asked between the readings, only where the first one shows a deadlock.
        read_again: given the suspects, returns the graph of the second reading.
        doubt: why no deadlock of this process is certain; "" where nothing speaks against it.
    """
    found = deadlocks.find(first)
    suspects = wait_for_graph.related_to(first, found)
    if not suspects.blocked:
        return ()
    suspects, awake = ask_kernel(suspects, found)
    return deadlocks.find_confirmed(suspects, read_again(suspects), awake, doubt)
