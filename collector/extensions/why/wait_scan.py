"""One scan of the waits that a search from some processes reaches."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from locktop.collector.analysis.wait_for_graph import BlockedThread, Request, WaitForGraph
from locktop.collector.extensions.why.call_waits import TIME_LIMIT, CallWaits
from locktop.collector.extensions.why.host import Host
from locktop.collector.extensions.why.lock_waits import ProcessScan
from locktop.collector.extensions.why.model import (
    ANY_THREAD,
    HOLDER,
    Awaited,
    HostThread,
    WaitGroup,
)
from locktop.collector.model import BlockReason

#: Processes of one search. Beyond them, a provider counts as one that may go on.
_MAX_PROCESSES = 4096


class WaitScan:
    """The waits of the threads that a search from some processes reaches, at one moment."""

    def __init__(
        self,
        pids: Iterable[int],
        scans: Mapping[int, ProcessScan],
        host: Host | None = None,
    ) -> None:
        """Args:
        pids: where the search begins.
        scans: what scans of some of the processes add, by pid.
        host: with these processes; None: the machine as it is now.
        """
        self.host = host or Host()
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
                pids = dict.fromkeys((*awaited.pids, *awaited.sharers))
                new = [other for other in pids if other not in wanted]
                wanted.update(new)
                queue.extend(new)

    @staticmethod
    def _merged(thread: HostThread, by_call: Awaited | None, scan: ProcessScan) -> Awaited | None:
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
        # The owner of a mutex in shared memory is known: no other process may end that wait.
        is_owned = lock.is_settled or (lock.role == HOLDER and by_call.other_end != TIME_LIMIT)
        other_end = "" if is_owned else by_call.other_end
        doubt = lock.doubt or by_call.doubt
        return replace(lock, other_end=other_end, doubt=doubt, frames=frames)

    def groups(self) -> tuple[WaitGroup, ...]:
        """Return all waits; threads of a process that wait for the same are together."""
        groups: dict[tuple[int, str], list[HostThread]] = {}
        for tid, awaited in self.awaited.items():
            thread = self.threads[tid]
            groups.setdefault((thread.pid, awaited.does), []).append(thread)
        return tuple(
            WaitGroup(tuple(threads), self.awaited[threads[0].tid]) for threads in groups.values()
        )

    def graph(self, is_strict: bool = False) -> WaitForGraph:
        """Return the waits that nobody else can end.

        Args:
            is_strict: whether ``Awaited.sharers`` count as providers.
        """
        requests = _Requests(is_strict)
        blocked = {}
        for tid, awaited in self.awaited.items():
            thread = self.threads[tid]
            if awaited.other_end or not (awaited.is_settled or thread.runs >= 0):
                continue
            seq = -1 if awaited.is_settled else thread.runs
            blocked[tid] = BlockedThread(tid, seq, 1, requests.requests(awaited))
        ended = {awaited.ended_holder for awaited in self.awaited.values()} - {0}
        return WaitForGraph(blocked, ended)


class _Requests:
    """The requests of waits. Waits for the same threads share theirs: there may be thousands."""

    def __init__(self, is_strict: bool) -> None:
        self._is_strict = is_strict
        self._unions: dict[tuple[int, int], frozenset[int]] = {}
        self._requests: dict[tuple[object, ...], Request] = {}

    def requests(self, awaited: Awaited) -> tuple[Request, ...]:
        """Return the conditions that must all be met before a wait can end."""
        providers = awaited.providers
        if self._is_strict and awaited.sharer_tids:
            key = id(providers), id(awaited.sharer_tids)
            if key not in self._unions:
                self._unions[key] = providers | awaited.sharer_tids
            providers = self._unions[key]
        named = self._request(providers, not awaited.needs_all, awaited.doubt)
        if awaited.wakers is None:
            return (named,)
        return named, self._request(awaited.wakers, True, awaited.waker_doubt)

    def _request(self, providers: frozenset[int], is_or: bool, doubt: str) -> Request:
        key = (id(providers), is_or, doubt)
        if key not in self._requests:
            self._requests[key] = Request(BlockReason.SIGNALS, providers, is_or, doubt)
        return self._requests[key]
