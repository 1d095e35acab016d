"""The threads that nobody can wake, by two scans that show the same waits."""

from __future__ import annotations

from collections.abc import Set

from locktop.collector.analysis import deadlocks, wait_for_graph
from locktop.collector.analysis.deadlocks import reduce_graph
from locktop.collector.analysis.wait_for_graph import BlockedThread, WaitForGraph
from locktop.collector.extensions.why.wait_scan import WaitScan
from locktop.collector.linux import socket_limits

_GIVES_UP = "the socket has a time limit"


class StuckSets:
    """The threads that nobody can wake, by two looks that show the same waits."""

    def __init__(self, first: WaitScan, second: WaitScan) -> None:
        graph = wait_for_graph.unchanged_part(first.graph(), second.graph())
        certain, possible = _stuck(graph)
        if limits := self._socket_limits(possible, first):
            blocked = {
                tid: thread if (doubt := limits.get(tid)) is None else _add_doubt(thread, doubt)
                for tid, thread in graph.blocked.items()
                if limits.get(tid) != _GIVES_UP
            }
            certain, possible = _stuck(WaitForGraph(blocked, graph.ended))
        self.certain, self.possible = certain, possible

    @staticmethod
    def _socket_limits(tids: Set[int], scan: WaitScan) -> dict[int, str]:
        """Return by tid the waits at sockets that give up, or whose time limit is not known."""
        limits = {}
        for tid in tids:
            query, thread = scan.awaited[tid].socket_limit, scan.threads[tid]
            if query is None:
                continue
            is_limited = socket_limits.has_limit(thread.pid, *query)
            if is_limited:
                limits[tid] = _GIVES_UP
            elif is_limited is None:
                limits[tid] = (
                    f"whether the socket of {scan.host.name(thread.pid)} has a time limit"
                    " is hidden from this user"
                )
        return limits


def _stuck(graph: WaitForGraph) -> tuple[frozenset[int], frozenset[int]]:
    """Return the tids of the threads that are certainly stuck, and of those that may be."""
    sure = deadlocks.drop_doubtful(graph.blocked)
    certain = frozenset(reduce_graph(sure, graph.ended)[0])
    return certain, certain | frozenset(reduce_graph(graph.blocked, graph.ended)[0])


def _add_doubt(thread: BlockedThread, doubt: str) -> BlockedThread:
    requests = (request._replace(doubt=request.doubt or doubt) for request in thread.requests)
    return thread._replace(requests=tuple(requests))
