"""The waits for locks of one process, from a scan of it, with the names and lines of its stacks."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing

from msgspec import Struct
from msgspec.structs import replace

from locktop.collector.analysis import wait_requests
from locktop.collector.analysis.wait_for_graph import BlockedThread
from locktop.collector.errors import LocktopError
from locktop.collector.extensions.why.call_waits import TIME_LIMIT
from locktop.collector.extensions.why.model import HOLDER, Awaited
from locktop.collector.linux import procfs
from locktop.collector.model import BlockReason, Frame, Lock, Snapshot, Thread
from locktop.collector.model.frames import innermost_own_frame
from locktop.collector.render.words.foreign_code import innermost_program_frame
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.sources.attach import Source, attach
from locktop.collector.sources.thread_stacks import scanned_stacks

#: Seconds for the owners of locks, and between two scans for them.
_MAX_SCANS_S, _BETWEEN_S = 1.2, 0.2
_PROBABLY = "no lock names its holder here: {holder} probably has it"


class ProcessScan(Struct, frozen=True):
    """The part of a scan that the calls of a process's threads lack."""

    #: The waits for locks, by tid. Those without a known holder have no providers.
    waits: Mapping[int, Awaited] = {}
    #: The innermost function of the program itself, by tid; () if it is not known.
    frames: Mapping[int, tuple[Frame, ...]] = {}
    names: Mapping[int, str] = {}  # of threads, by tid, as the program itself knows them


def scan(pid: int, is_full: bool = True) -> ProcessScan:
    """Return the waits for locks of a process, and where its threads are.

    A process that cannot be scanned has none. The scan stops no thread.

    Args:
        pid: the process.
        is_full: whether to read all names and stacks, and to search long for probable holders.
    """
    try:
        with closing(attach(pid)) as source:
            if is_full:
                snapshot = _scan_until_known(source)
                later = scanned_stacks.read_later(snapshot)
            else:
                source.scan()
                snapshot, later = source.scan(), {}
    except LocktopError:
        return ProcessScan()
    return read(pid, snapshot, later)


def read(pid: int, snapshot: Snapshot, later: dict[int, tuple[Frame, ...]]) -> ProcessScan:
    """Return the waits for locks in a scan with names, and where the threads are.

    Args:
        pid: the process.
        snapshot: the scan.
        later: by tid, stacks that were read after the scan.
    """
    return _ScanReader(pid, snapshot, later).read()


def _scan_until_known(source: Source) -> Snapshot:
    """Return a scan with names, in which the holders of all locks are known as far as they can be.

    A deadlock of a sampled process, and an owner in another process, need several scans.
    """
    deadline = time.monotonic() + _MAX_SCANS_S
    snapshot = source.scan()
    while _has_unknown_holders(snapshot) and time.monotonic() < deadline:
        time.sleep(_BETWEEN_S)
        snapshot = source.scan()
    return source.scan(resolve=True)


def _has_unknown_holders(snapshot: Snapshot) -> bool:
    waits = (thread.waiting_for for thread in snapshot.threads)
    return not snapshot.deadlocks and any(
        wait is not None and not wait.idle and not wait.timed and not wait.holders for wait in waits
    )


class _ScanReader:
    """Translates a scan to the ids of locktop's pid namespace."""

    def __init__(self, pid: int, snapshot: Snapshot, later: dict[int, tuple[Frame, ...]]) -> None:
        """``later``: by tid, stacks that were read after the scan."""
        self._pid = pid
        self._later = later
        self._index = SnapshotIndex(snapshot)
        self._snapshot = snapshot
        self._host_tids = host_tids(pid)
        self._ended = {
            edge.held_by
            for deadlock in snapshot.deadlocks
            if deadlock.certain
            for edge in deadlock.cycle
            if edge.reason is BlockReason.ABANDONED
        }
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
        """Return a wait for a lock, with who has it."""
        awaited = self._held_wait(thread, blocked)
        ended = self._ended.intersection(awaited.providers)
        return replace(awaited, ended_holder=min(ended), is_settled=True) if ended else awaited

    def _held_wait(self, thread: Thread, blocked: BlockedThread | None) -> Awaited:
        wait = thread.waiting_for
        assert wait is not None
        awaited = Awaited(
            does=f"waits for {self._index.lock_name(wait.lock)}",
            duration_s=wait.duration_s,
            is_lower_bound=wait.is_lower_bound,
            other_end=TIME_LIMIT if wait.timed else "",
        )
        if thread.tid in self._stuck:
            holder = self._stuck[thread.tid]
            tids = frozenset({self._host_tid(holder)} if holder else ())
            return replace(
                awaited, role=HOLDER, providers=tids, pids=(self._pid,), is_settled=True,
                other_end="",
            )  # fmt: skip
        if blocked is not None:
            request = blocked.requests[0]
            return replace(
                awaited,
                role=HOLDER,
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
            role=HOLDER if holders else "likely holder",
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


def host_tids(pid: int) -> dict[int, int]:
    """Return the threads of a process in locktop's pid namespace, by their ids in its own.

    A process of our own namespace has none: its ids are the same.
    """
    try:
        if procfs.own_tid(pid, pid) == pid:
            return {}
        return {procfs.own_tid(pid, tid): tid for tid in procfs.tids(pid)}
    except (OSError, ValueError):
        return {}
