"""Follows the waits from a process to their root, and finds the threads that nobody can wake."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Set

from msgspec.structs import replace

from locktop.collector.analysis import deadlocks, wait_for_graph
from locktop.collector.analysis.deadlocks import reduce_graph
from locktop.collector.analysis.wait_for_graph import BlockedThread, Request, WaitForGraph
from locktop.collector.extensions.why.call_waits import CallWaits
from locktop.collector.extensions.why.host import Host
from locktop.collector.extensions.why.lock_waits import ProcessScan
from locktop.collector.extensions.why.model import (
    ANY_THREAD,
    Awaited,
    Chain,
    HostThread,
    Step,
    Verdict,
)
from locktop.collector.linux import socket_limits
from locktop.collector.model import BlockReason

_GIVES_UP = "the socket has a time limit"
#: Processes of one search. Beyond them, a provider counts as one that may go on.
_MAX_PROCESSES = 4096


class Look:
    """The waits of the threads that a search from some processes reaches, at one moment."""

    def __init__(self, pids: Iterable[int], scans: Mapping[int, ProcessScan]) -> None:
        """``scans``: what scans of some of the processes add, by pid."""
        self.host = Host()
        self.threads: dict[int, HostThread] = {}
        self.awaited: dict[int, Awaited] = {}
        self.reached: list[int] = []  # processes, the nearest first
        calls = CallWaits(self.host)
        queue = deque(dict.fromkeys(pids))
        wanted = set(queue)
        while queue and len(self.reached) < _MAX_PROCESSES:
            pid = queue.popleft()
            self.reached.append(pid)
            scan = scans.get(pid, ProcessScan())
            for thread in self.host.threads(pid):
                self.threads[thread.tid] = thread
                awaited = self._merged(thread, calls.awaited(thread), scan)
                if awaited is None:
                    continue
                self.awaited[thread.tid] = awaited
                new = [other for other in awaited.pids if other not in wanted]
                wanted.update(new)
                queue.extend(new)

    @staticmethod
    def _merged(
        thread: HostThread, by_call: Awaited | None, scan: ProcessScan
    ) -> Awaited | None:
        """Return the wait for a lock with what the call tells, or the wait in the call."""
        frames = scan.frames.get(thread.tid, ())
        lock = scan.waits.get(thread.tid)
        if lock is None:
            return replace(by_call, frames=frames) if by_call is not None else None
        if by_call is None:
            return replace(lock, frames=frames) if lock.is_settled else None  # or it runs again
        if by_call.role == ANY_THREAD and not lock.is_settled:
            lock = replace(lock, wakers=by_call.providers, waker_doubt=by_call.doubt)
        if not lock.providers:
            lock = replace(lock, role=by_call.role, providers=by_call.providers, pids=by_call.pids)
        other_end = "" if lock.is_settled else by_call.other_end
        doubt = lock.doubt or by_call.doubt
        return replace(lock, other_end=other_end, doubt=doubt, frames=frames)

    def graph(self) -> WaitForGraph:
        """Return the waits that nobody else can end."""
        requests = _Requests()
        blocked = {}
        for tid, awaited in self.awaited.items():
            thread = self.threads[tid]
            if awaited.other_end or not (awaited.is_settled or thread.runs >= 0):
                continue
            seq = -1 if awaited.is_settled else thread.runs
            blocked[tid] = BlockedThread(tid, seq, 1, requests.of_wait(awaited))
        return WaitForGraph(blocked, frozenset())


class _Requests:
    """The requests of waits. Waits for the same threads share theirs: there may be thousands."""

    def __init__(self) -> None:
        self._requests: dict[tuple[object, ...], Request] = {}

    def of_wait(self, awaited: Awaited) -> tuple[Request, ...]:
        """Return the conditions that must all be met before a wait can end."""
        named = self._request(awaited.providers, not awaited.needs_all, awaited.doubt)
        if awaited.wakers is None:
            return (named,)
        return named, self._request(awaited.wakers, True, awaited.waker_doubt)

    def _request(self, providers: frozenset[int], is_or: bool, doubt: str) -> Request:
        key = (id(providers), is_or, doubt)
        if key not in self._requests:
            self._requests[key] = Request(BlockReason.SIGNALS, providers, is_or, doubt)
        return self._requests[key]


class Knots:
    """The threads that nobody can wake, by two looks that show the same waits."""

    def __init__(self, first: Look, second: Look) -> None:
        graph = wait_for_graph.unchanged_part(first.graph(), second.graph())
        certain, possible = _stuck(graph)
        if limits := self._socket_limits(possible, first):
            blocked = {
                tid: thread if (doubt := limits.get(tid)) is None else _doubted(thread, doubt)
                for tid, thread in graph.blocked.items()
                if limits.get(tid) != _GIVES_UP
            }
            certain, possible = _stuck(WaitForGraph(blocked, graph.ended))
        self.certain, self.possible = certain, possible

    @staticmethod
    def _socket_limits(tids: Set[int], look: Look) -> dict[int, str]:
        """Return by tid the waits at sockets that give up, or whose time limit is not known."""
        limits = {}
        for tid in tids:
            query, thread = look.awaited[tid].socket_limit, look.threads[tid]
            if query is None:
                continue
            is_limited = socket_limits.has_limit(thread.pid, *query)
            if is_limited:
                limits[tid] = _GIVES_UP
            elif is_limited is None:
                limits[tid] = f"whether the socket of {look.host.name(thread.pid)} has a time limit"\
                    " is hidden from this user"
        return limits


def _stuck(graph: WaitForGraph) -> tuple[frozenset[int], frozenset[int]]:
    """Return the tids of the threads that are certainly stuck, and of those that may be."""
    sure = deadlocks.drop_doubtful(graph.blocked)
    certain = frozenset(reduce_graph(sure, graph.ended)[0])
    return certain, certain | frozenset(reduce_graph(graph.blocked, graph.ended)[0])


def _doubted(thread: BlockedThread, doubt: str) -> BlockedThread:
    requests = (request._replace(doubt=request.doubt or doubt) for request in thread.requests)
    return thread._replace(requests=tuple(requests))


def chain(pid: int, look: Look, knots: Knots) -> Chain:
    """Return the way from a process to the root of its wait."""
    tids = [thread.tid for thread in look.host.threads(pid)]
    for verdict, stuck in (
        (Verdict.DEADLOCK, knots.certain),
        (Verdict.POSSIBLE, knots.possible),
    ):
        inside = [tid for tid in tids if tid in stuck]
        if inside:
            steps, back_to = _follow(_most_told(inside, look), look, stuck)
            doubts = dict.fromkeys(
                step.awaited.doubt for step in steps if step.awaited is not None
            )
            return Chain(pid, verdict, steps, back_to, tuple(filter(None, doubts)))
    waiting = [tid for tid in tids if tid in look.awaited]
    if not waiting:
        steps = tuple(Step(look.threads[tid], None) for tid in tids[:1])
        return Chain(pid, Verdict.NONE, steps)
    start = _most_told(waiting, look)
    steps, _ = _follow(start, look, frozenset())
    return Chain(pid, Verdict.WAITS, steps)


def _most_told(tids: Iterable[int], look: Look) -> int:
    """Return the thread whose wait says most about a process: one of many that are alike."""
    every = list(tids)
    alike = Counter(look.awaited[tid].does for tid in every)
    return min(
        every,
        key=lambda tid: (
            _rank(look.awaited[tid]),
            -alike[look.awaited[tid].does],
            -look.awaited[tid].duration_s,
            tid,
        ),
    )


def _rank(awaited: Awaited) -> int:
    """Return how little a wait says: one for another thread of the process says least."""
    if awaited.role == ANY_THREAD:
        return 3
    if awaited.providers and not awaited.other_end:
        return 0
    return 1 if awaited.providers else 2


def _follow(start: int, look: Look, stuck: Set[int]) -> tuple[tuple[Step, ...], int]:
    """Return the steps from a thread to the end of its chain, and where a circle closes."""
    order: dict[int, int] = {}
    steps: list[Step] = []
    tid = start
    while tid not in order:
        order[tid] = len(steps)
        thread, awaited = look.threads[tid], look.awaited.get(tid)
        steps.append(Step(thread, awaited, _along(thread, awaited, look)))
        following = _next(awaited, look, stuck)
        if following is None:
            return tuple(steps), -1
        tid = following
    return tuple(steps), order[tid]


def _along(thread: HostThread, awaited: Awaited | None, look: Look) -> int:
    if awaited is None:
        return 1
    return sum(
        other.tid in look.awaited and look.awaited[other.tid].does == awaited.does
        for other in look.host.threads(thread.pid)
    )


def _next(awaited: Awaited | None, look: Look, stuck: Set[int]) -> int | None:
    """Return the provider with which a chain goes on; None if it ends."""
    if awaited is None:
        return None
    providers = [tid for tid in awaited.providers if tid in look.threads]
    inside = [tid for tid in providers if tid in stuck]
    if inside:
        return _most_told(inside, look)
    free = [tid for tid in providers if tid not in look.awaited]
    if free or not providers:
        return min(free, default=None)
    return _most_told(providers, look)
