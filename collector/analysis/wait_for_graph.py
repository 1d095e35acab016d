"""The wait-for graph of one scan: which threads wait, and which threads each wait depends on.

A blocked thread has one or more requests. A request has providers: the threads that could satisfy
it. An AND request needs all of its providers to go on, an OR request needs one of them. This is the
AND-OR model of deadlocks in resource systems (Knapp, "Deadlock detection in distributed databases",
ACM Computing Surveys 1987). ``wait_requests.py`` builds the graph, ``deadlocks.py`` finds the
deadlocks in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from types import MappingProxyType
from typing import NamedTuple

from msgspec import Struct

from locktop.collector.model import BlockReason, Deadlock

_NO_SITES: Mapping[int, int] = MappingProxyType({})


class Request(NamedTuple):
    """A condition that must be met before a wait can end. Several waits may share one request."""

    reason: BlockReason  # why the providers block the wait
    providers: Set[int]  # tids
    is_or: bool = False  # one provider is enough; otherwise all providers must go on
    doubt: str = ""  # why the wait may end although the providers are stuck
    sites: Mapping[int, int] = _NO_SITES  # by tid: the call site where it took the lock
    #: Only of semaphores: the counts of each thread (tid, acquisitions, posts). A reading takes
    #: the threads one after the other. If two readings show the same counts, the counts were so
    #: between the readings.
    uses: Set[tuple[int, int, int]] = frozenset()


class BlockedThread(NamedTuple):
    """A thread whose wait cannot end before all of its ``requests`` are met."""

    tid: int
    seq: int  # the number of the wait
    lock: int  # id
    requests: tuple[Request, ...]
    stack: int = 0
    duration_s: float = 0.0
    must_be_asleep: bool = False  # the thread is blocked only if the kernel shows it asleep
    is_lower_bound: bool = False  # of duration_s


class WaitForGraph(Struct, frozen=True):
    """The blocked threads of one scan by tid, and the providers that have ended."""

    blocked: Mapping[int, BlockedThread]
    ended: Set[int]


def related_to(graph: WaitForGraph, deadlocks: Sequence[Deadlock]) -> WaitForGraph:
    """Return the part of the graph with the threads that are in the deadlocks or behind them."""
    tids = {edge.tid for deadlock in deadlocks for edge in deadlock.cycle}
    tids.update(tid for deadlock in deadlocks for tid in deadlock.stuck)
    return WaitForGraph({tid: graph.blocked[tid] for tid in tids}, graph.ended)


def remove_waits(graph: WaitForGraph, tids: Set[int]) -> WaitForGraph:
    """Return the graph without the waits of some threads."""
    if not tids:
        return graph
    blocked = {tid: thread for tid, thread in graph.blocked.items() if tid not in tids}
    return WaitForGraph(blocked, graph.ended)


def unchanged_part(
    before: WaitForGraph, now: WaitForGraph, awake: Set[int] = frozenset()
) -> WaitForGraph:
    """Return the part of the graph that did not change between two readings. These are the waits
    that went on, with the requests that both readings show.

    Args:
        before: The graph of the first reading.
        now: The graph of the second reading.
        awake: Threads that the kernel showed awake, or alive, between the readings.
    """
    common: dict[tuple[int, int], Request] = {}
    blocked: dict[int, BlockedThread] = {}
    for tid, thread in now.blocked.items():
        earlier = before.blocked.get(tid)
        if earlier is None or (earlier.seq, earlier.lock) != (thread.seq, thread.lock):
            continue
        if thread.must_be_asleep and tid in awake:
            continue
        requests = tuple(_common_requests(earlier.requests, thread.requests, common))
        if requests:
            # The snapshot shows the first reading, so its duration counts.
            blocked[tid] = thread._replace(requests=requests, duration_s=earlier.duration_s)
    return WaitForGraph(blocked, (before.ended & now.ended) - awake)


def _common_requests(
    before: Sequence[Request], now: Sequence[Request], common: dict[tuple[int, int], Request]
) -> Iterator[Request]:
    """Yield the requests of a wait that both readings show. ``common``: the results so far by the
    identities of the two requests, so that waits still share their requests."""
    for request in now:
        for earlier in before:
            if _identity(earlier) != _identity(request):
                continue
            key = (id(earlier), id(request))
            if key not in common:
                # A provider of an AND request blocked the wait all the time if both readings agree.
                # A provider of an OR request is a way out if one of the readings shows it.
                same = (
                    earlier.providers | request.providers
                    if request.is_or
                    else earlier.providers & request.providers
                )
                common[key] = request._replace(providers=same)
            if common[key].providers or request.is_or:
                yield common[key]


def _identity(request: Request) -> tuple[object, ...]:
    return request.reason, request.is_or, request.doubt, request.uses
