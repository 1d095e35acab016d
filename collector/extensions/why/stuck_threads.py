"""The threads that nobody can wake, by two scans that show the same waits."""

from __future__ import annotations

from collections.abc import Mapping, Set

from locktop.collector.analysis import deadlocks, wait_for_graph
from locktop.collector.analysis.deadlocks import reduce_graph
from locktop.collector.analysis.wait_for_graph import BlockedThread, WaitForGraph
from locktop.collector.extensions.why.model import StuckSets
from locktop.collector.extensions.why.wait_scan import WaitScan
from locktop.collector.linux import socket_limits

_GIVES_UP = "the socket has a time limit"


def stuck_threads(first: WaitScan, second: WaitScan) -> StuckSets:
    """Return the threads that nobody can wake, by two scans that show the same waits."""
    graph = wait_for_graph.unchanged_part(first.graph(), second.graph())
    strict = wait_for_graph.unchanged_part(first.graph(True), second.graph(True))
    possible = _stuck(graph)
    doubts = _socket_limits(possible, first)
    if doubts:
        graph, strict = _add_limits(graph, doubts), _add_limits(strict, doubts)
        possible = _stuck(graph)
    certain = _certain(strict)
    at_descriptors = [tid for tid in certain if first.awaited[tid].is_at_descriptor]
    if at_descriptors and (doubt := first.host.descriptors_on_the_way):
        doubts |= dict.fromkeys(at_descriptors, doubt)
        certain = _certain(_add_limits(strict, doubts))
    return StuckSets(possible, certain, doubts)


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


def _stuck(graph: WaitForGraph) -> frozenset[int]:
    """Return the tids of the threads that are stuck, if all waits are as the graph has them."""
    return frozenset(reduce_graph(graph.blocked, graph.ended)[0])


def _certain(graph: WaitForGraph) -> frozenset[int]:
    """Return the tids of the threads that are stuck by waits without a doubt."""
    return _stuck(WaitForGraph(deadlocks.drop_doubtful(graph.blocked), graph.ended))


def _add_limits(graph: WaitForGraph, limits: Mapping[int, str]) -> WaitForGraph:
    """Return a graph without the waits that give up, and with the doubts about others."""
    blocked = {
        tid: thread if (doubt := limits.get(tid)) is None else _add_doubt(thread, doubt)
        for tid, thread in graph.blocked.items()
        if limits.get(tid) != _GIVES_UP
    }
    return WaitForGraph(blocked, graph.ended)


def _add_doubt(thread: BlockedThread, doubt: str) -> BlockedThread:
    requests = (request._replace(doubt=request.doubt or doubt) for request in thread.requests)
    return thread._replace(requests=tuple(requests))
