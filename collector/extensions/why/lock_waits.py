"""The waits for locks of one process, from a scan of it, with the names and lines of its stacks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing

from msgspec import Struct
from msgspec.structs import replace

from locktop.collector.analysis import wait_requests
from locktop.collector.analysis.wait_for_graph import BlockedThread
from locktop.collector.errors import LocktopError
from locktop.collector.extensions.why.model import Awaited
from locktop.collector.linux import procfs
from locktop.collector.model import Frame, Lock, Snapshot, Thread
from locktop.collector.model.frames import innermost_own_frame
from locktop.collector.render.words.foreign_code import innermost_program_frame
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.sources.attach import attach
from locktop.collector.sources.thread_stacks import scanned_stacks

_PROBABLY = "no lock names its holder here: {holder} probably has it"


class ProcessScan(Struct, frozen=True):
    """The part of a scan that the calls of a process's threads lack."""

    #: The waits for locks, by tid. Those without a known holder have no providers.
    waits: Mapping[int, Awaited] = {}
    #: The innermost function of the program itself, by tid; () if it is not known.
    frames: Mapping[int, tuple[Frame, ...]] = {}
    names: Mapping[int, str] = {}  # of threads, by tid, as the program itself knows them


def scan(pid: int) -> ProcessScan:
    """Return the waits for locks of a process, and where its threads are.

    A process that cannot be scanned has none. The scan stops no thread.
    """
    try:
        with closing(attach(pid)) as source:
            source.scan()  # a sampled process: only a second scan proves a deadlock
            snapshot = source.scan(resolve=True)
            later = scanned_stacks.read_later(snapshot)
    except LocktopError:
        return ProcessScan()
    return _ScanReader(pid, snapshot, later).read()


class _ScanReader:
    """Translates a scan to the ids of locktop's pid namespace."""

    def __init__(self, pid: int, snapshot: Snapshot, later: dict[int, tuple[Frame, ...]]) -> None:
        """``later``: by tid, stacks that were read after the scan."""
        self._pid = pid
        self._later = later
        self._index = SnapshotIndex(snapshot)
        self._snapshot = snapshot
        self._host_tids = _host_tids(pid)
        self._stuck = {
            edge.tid: edge.held_by
            for deadlock in snapshot.deadlocks
            if deadlock.certain
            for edge in deadlock.cycle
        }

    def read(self) -> ProcessScan:
        """Return the waits and the frames."""
        locks = {lock.id: lock for lock in self._snapshot.locks}
        graph = wait_requests.build_graph(self._snapshot.threads, locks, self._snapshot.complete)
        waits: dict[int, Awaited] = {}
        frames: dict[int, tuple[Frame, ...]] = {}
        names: dict[int, str] = {}
        for thread in self._snapshot.threads:
            if thread.pid:  # of another process, which shares a lock
                continue
            tid = self._host_tid(thread.tid)
            frames[tid], names[tid] = self._frames(thread), thread.name
            wait = thread.waiting_for
            if wait is not None and not wait.idle:
                waits[tid] = self._lock_wait(thread, graph.blocked.get(thread.tid))
        return ProcessScan(waits, frames, names)

    def _host_tid(self, tid: int) -> int:
        return self._host_tids.get(tid, tid)

    def _frames(self, thread: Thread) -> tuple[Frame, ...]:
        frames = scanned_stacks.frames(self._snapshot, thread, self._later)
        frame = innermost_program_frame(frames) or innermost_own_frame(frames)
        frame = frame or self._index.wait_frame(thread)
        return (frame,) if frame is not None else ()

    def _lock_wait(self, thread: Thread, blocked: BlockedThread | None) -> Awaited:
        wait = thread.waiting_for
        assert wait is not None
        awaited = Awaited(
            does=f"waits for {self._index.lock_name(wait.lock)}",
            duration_s=wait.duration_s,
            is_lower_bound=wait.is_lower_bound,
            other_end="its time limit" if wait.timed else "",
        )
        if thread.tid in self._stuck:
            holder = self._stuck[thread.tid]
            tids = frozenset({self._host_tid(holder)} if holder else ())
            return replace(
                awaited, role="holder", providers=tids, pids=(self._pid,), is_settled=True,
                other_end="",
            )  # fmt: skip
        if blocked is not None:
            request = blocked.requests[0]
            return replace(
                awaited,
                role="holder",
                providers=frozenset(map(self._host_tid, request.providers)),
                pids=tuple(self._pids(request.providers)),
                doubt=request.doubt,
                needs_all=not request.is_or,
            )
        return self._unproven_wait(awaited, wait.holders, self._index.locks.get(wait.lock))

    def _unproven_wait(
        self, awaited: Awaited, holders: tuple[int, ...], lock: Lock | None
    ) -> Awaited:
        """A wait whose holder is not proven, or in another process."""
        probable = () if holders or lock is None else lock.holders_probable
        tids = holders or tuple(holder.tid for holder in probable)
        if not tids:
            return awaited
        doubt = ""
        if probable:
            doubt = _PROBABLY.format(holder=self._index.thread_name(tids[0]))
        return replace(
            awaited,
            role="holder" if holders else "likely holder",
            providers=frozenset(map(self._host_tid, tids)),
            pids=tuple(self._pids(tids)),
            doubt=doubt,
        )

    def _pids(self, tids: Iterable[int]) -> Iterator[int]:
        """Yield the processes of threads, each once."""
        pids = dict.fromkeys(
            self._index.threads_elsewhere[tid].pid
            if tid in self._index.threads_elsewhere
            else self._pid
            for tid in tids
        )
        yield from pids


def _host_tids(pid: int) -> dict[int, int]:
    """Return the threads of a process in locktop's pid namespace, by their ids in its own.

    A process of our own namespace has none: its ids are the same.
    """
    try:
        if procfs.own_tid(pid, pid) == pid:
            return {}
        return {procfs.own_tid(pid, tid): tid for tid in procfs.tids(pid)}
    except (OSError, ValueError):
        return {}
