"""Why the threads of a core waited: the chain within its process."""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping, Sequence
from contextlib import closing

from msgspec.structs import replace

from locktop.collector.extensions.why import lock_waits, wait_chains
from locktop.collector.extensions.why.host import Host
from locktop.collector.extensions.why.model import (
    Awaited,
    Chain,
    ChainStep,
    HostProcess,
    HostThread,
    StuckSets,
    WaitGroup,
    WhyAnswer,
)
from locktop.collector.extensions.why.wait_scan import WaitScan
from locktop.collector.linux import procfs, syscalls
from locktop.collector.linux.file_locks import FileLock
from locktop.collector.linux.unix_sockets import UnixSocket
from locktop.collector.model import Snapshot
from locktop.collector.sources.core.source import CoreSource

_NAMELESS = "thread"


def why(path: str) -> WhyAnswer:
    """Return why the process of a core waited.

    The verdict is the one of ``locktop check``. All waits stand still, so one scan is enough.

    Args:
        path: of the core.

    Raises:
        LocktopError: the file is no core that locktop understands.
    """
    begin = time.monotonic()
    with closing(CoreSource(path)) as source:
        snapshot = source.scan(resolve=True)
        scans = {source.number: lock_waits.read(source.number, snapshot, {})}
        scan = WaitScan(scans, scans, _CoreHost(source.number, snapshot))
    chain = wait_chains.chain(source.number, scan, _stuck_threads(snapshot))
    own = _OwnIds(snapshot.process.pid)
    names = scans[source.number].names
    return WhyAnswer(
        chains=(own.chain(chain),),
        scanned=1,
        names={own.pid: f"{snapshot.process.comm} {own.pid}"},
        thread_names={tid: name or _NAMELESS for tid, name in names.items()},
        waits=tuple(map(own.group, scan.groups())),
        notes=source.warnings,
        scan_s=time.monotonic() - begin,
        is_complete=snapshot.complete,
    )


def _stuck_threads(snapshot: Snapshot) -> StuckSets:
    """Return the threads of the deadlocks that the scan has found."""
    tids = {
        is_certain: frozenset(
            edge.tid
            for deadlock in snapshot.deadlocks
            if deadlock.certain is is_certain
            for edge in deadlock.cycle
        )
        for is_certain in (True, False)
    }
    return StuckSets(possible=tids[True] | tids[False], certain=tids[True])


class _CoreHost(Host):
    """A machine with one process, of which the core tells no files and no relatives.

    The ids of the threads are those that the process itself has.
    """

    has_files = False

    def __init__(self, number: int, snapshot: Snapshot) -> None:
        """``number``: of the process; see saved_process.py."""
        super().__init__({number: HostProcess(number, snapshot.process.comm, 0, "S")})

    @functools.cached_property
    def unix(self) -> Mapping[int, UnixSocket]:
        """None: those of today say nothing."""
        return {}

    @functools.cached_property
    def file_locks(self) -> Sequence[FileLock]:
        """None: those of today say nothing."""
        return ()

    def sleeps_in(self, thread: HostThread) -> str:
        """Return that this is not known."""
        return "0"

    def _read_thread(self, pid: int, tid: int) -> HostThread:
        stat = procfs.thread_stat(pid, tid)
        own_tid = procfs.own_tid(pid, tid)
        call = syscalls.parse(procfs.thread_syscall(pid, tid))
        runs = procfs.thread_runs(pid, tid)
        return HostThread(own_tid, pid, stat.comm or _NAMELESS, stat.state, call, runs=runs)


class _OwnIds:
    """Writes the id that the process itself has in place of its number here."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def chain(self, chain: Chain) -> Chain:
        """Return a chain with that id."""
        return replace(chain, pid=self.pid, steps=tuple(map(self._step, chain.steps)))

    def group(self, group: WaitGroup) -> WaitGroup:
        """Return threads that wait for the same with that id."""
        return WaitGroup(tuple(map(self._thread, group.threads)), self._wait(group.awaited))

    def _step(self, step: ChainStep) -> ChainStep:
        awaited = self._wait(step.awaited) if step.awaited is not None else None
        return replace(step, thread=self._thread(step.thread), awaited=awaited)

    def _thread(self, thread: HostThread) -> HostThread:
        return replace(thread, pid=self.pid)

    def _wait(self, awaited: Awaited) -> Awaited:
        return replace(awaited, pids=(self.pid,) * bool(awaited.pids))
