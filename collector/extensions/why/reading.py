"""Reads why processes wait: two scans of the machine, and one of each process on the way."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from math import inf

from msgspec.structs import replace

from locktop.collector.extensions.why import lock_waits, wait_chains
from locktop.collector.extensions.why.lock_waits import ProcessScan
from locktop.collector.extensions.why.model import (
    DEADLOCKED,
    Chain,
    ChainStep,
    HostThread,
    WhyAnswer,
)
from locktop.collector.extensions.why.stuck_threads import stuck_threads
from locktop.collector.extensions.why.wait_scan import WaitScan
from locktop.collector.linux import futex, procfs, syscalls
from locktop.collector.linux.sleep_clock import SleepClock
from locktop.collector.linux.target import check_proc, find_process

#: Seconds between the two scans, which must show the same waits.
_BETWEEN_S = 0.25
#: Processes of which the locks and the stacks are read: the nearest ones.
_MAX_SCANS = 24
_CONTENDED = 2
_MIN_STUCK = 2  # threads in a deadlock at locks that --stuck looks for
#: Of --stuck: seconds, and CPU seconds, for full scans. These resolve names and search for probable
#: holders.
FULL_SCANS_S, FULL_SCANS_CPU_S = 6.0, 3.0
_MAX_SLEEPS = 64  # threads of a process whose sleep is measured


def why(pids: Sequence[int]) -> WhyAnswer:
    """Return why these processes wait.

    Raises:
        LocktopError: there is no such process.
    """
    for pid in pids:
        find_process(pid)
    return _answer(pids, WaitScan(pids, {}), time.monotonic(), _Scanner())


def why_stuck() -> WhyAnswer:
    """Return why processes wait that are in a deadlock, or behind one, of all processes.

    Raises:
        LocktopError: /proc is missing, or of another namespace.
    """
    check_proc()
    begin = time.monotonic()
    everybody = [pid for pid in procfs.pids() if pid != os.getpid()]
    first = WaitScan(everybody, {})
    time.sleep(_BETWEEN_S)
    second = WaitScan(everybody, {})
    stuck = stuck_threads(first, second).possible
    at_locks = _lock_contenders(first, second)
    behind_calls = {first.threads[tid].pid for tid in stuck}
    pids = [pid for pid in everybody if pid in at_locks or pid in behind_calls]
    begins = _SleepBegins(first)
    # A cycle of locks has two words or more, so a process with one word is the less likely one.
    pids.sort(key=lambda pid: (_has_one_word(at_locks.get(pid, ())), begins.earliest(pid)))
    if not pids:
        count, scan_s = len(everybody), time.monotonic() - begin
        return WhyAnswer((), count, {}, {}, hidden=_hidden(first), scan_s=scan_s)
    may_move = {pid: tids for pid, tids in at_locks.items() if pid not in behind_calls}
    answer = _answer(pids, WaitScan(pids, {}), begin, _Scanner(may_move, has_limit=True))
    chains = tuple(chain for chain in answer.chains if chain.verdict in DEADLOCKED)
    return replace(answer, chains=chains)


def why_threads(pid: int, tids: Sequence[int]) -> tuple[WhyAnswer, Mapping[int, Chain]]:
    """Return where the waits of some threads lead, by their system calls in one scan alone.

    Threads that run, or wait for locks, have no chain. No chain has a verdict on deadlocks.

    Args:
        pid: their process.
        tids: as the process itself has them; 0 for its first thread.
    """
    own_tids = lock_waits.host_tids(pid)
    host_tids = {tid: own_tids.get(tid, tid) or pid for tid in tids}
    wanted = {tid: host for tid, host in host_tids.items() if _may_wait_elsewhere(pid, host)}
    if not wanted:
        return WhyAnswer((), 0, {}, {}), {}
    begin = time.monotonic()
    scan = WaitScan([pid], {})
    chains = {
        tid: wait_chains.chain_of_thread(host, scan)
        for tid, host in wanted.items()
        if host in scan.threads
    }
    names = {pid: scan.host.name(pid) for pid in _pids(chains.values())}
    scan_s = time.monotonic() - begin
    return WhyAnswer(
        tuple(chains.values()), len(scan.host.processes), names, {}, scan_s=scan_s
    ), chains


def _may_wait_elsewhere(pid: int, tid: int) -> bool:
    """Return whether a thread sleeps in a system call that is not for a lock."""
    try:
        call = syscalls.parse(procfs.thread_syscall(pid, tid))
    except (OSError, ValueError):
        return False
    return call is not None and not syscalls.is_futex(call.number)


def _lock_contenders(first: WaitScan, second: WaitScan) -> dict[int, list[HostThread]]:
    """Return the threads that wait for locks whose word says so, if a process has several.

    The word of a mutex of glibc, and of one of Rust, is 2 while threads wait for it. A thread that
    has run between the scans is not stuck.
    """
    contenders: dict[int, list[HostThread]] = {}
    for tid, thread in first.threads.items():
        if second.threads.get(tid) == thread and _is_contender(thread):
            contenders.setdefault(thread.pid, []).append(thread)
    return {pid: threads for pid, threads in contenders.items() if len(threads) >= _MIN_STUCK}


def still_wait(threads: Sequence[HostThread]) -> bool:
    """Return whether several of these threads have not run since they were read."""
    return len(list(islice(filter(_has_not_run, threads), _MIN_STUCK))) == _MIN_STUCK


def _has_not_run(thread: HostThread) -> bool:
    try:
        return procfs.thread_runs(thread.pid, thread.tid) == thread.runs
    except (OSError, ValueError):
        return False


def _is_contender(thread: HostThread) -> bool:
    wait = futex.parse_wait(thread.pid, thread.call) if thread.call is not None else None
    return wait is not None and not wait.timed and wait.value == _CONTENDED


def _has_one_word(contenders: Sequence[HostThread]) -> bool:
    """Return whether all of these threads wait for one lock; False without threads."""
    waits = [futex.parse_wait(thread.pid, thread.call) for thread in contenders if thread.call]
    return len({wait.address for wait in waits if wait is not None}) == 1


def _answer(pids: Sequence[int], calls: WaitScan, begin: float, scanner: _Scanner) -> WhyAnswer:
    """Return the answer.

    Args:
        pids: the processes.
        calls: a scan without locks.
        begin: a time.monotonic().
        scanner: scans the processes on the way.
    """
    scans: dict[int, ProcessScan] = {}
    first = calls
    # The owner of a lock may be in a process that the calls alone do not lead to.
    while new := _lock_waiters(first, scans):
        scans |= {pid: scanner.scan(pid) for pid in new}
        pids = [pid for pid in pids if pid not in scanner.moved]
        first = WaitScan(pids, scans)
    time.sleep(_BETWEEN_S)
    stuck = stuck_threads(first, WaitScan(pids, scans))
    chains = [wait_chains.chain(pid, first, stuck) for pid in pids]
    scans |= {pid: scanner.scan(pid) for pid in _processes_without_scan(chains, scans)}
    details = _StepDetails(scans)
    return WhyAnswer(
        chains=tuple(map(details.add, chains)),
        scanned=len(first.host.processes),
        names={pid: first.host.name(pid) for pid in {*first.reached, *_pids(chains)}},
        thread_names={tid: name for scan in scans.values() for tid, name in scan.names.items()},
        waits=first.groups(),
        hidden=_hidden(first),
        scan_s=time.monotonic() - begin,
        notes=scanner.notes,
    )


def _hidden(scan: WaitScan) -> tuple[int, ...]:
    return tuple(sorted(scan.host.hidden | scan.host.files.hidden))


def _lock_waiters(scan: WaitScan, scans: Mapping[int, ProcessScan]) -> list[int]:
    """Return the processes whose threads may wait for locks, the nearest first.

    Those of ``scans`` are left out, and those that would be too many.
    """
    waiting = {
        thread.pid
        for thread in scan.threads.values()
        if thread.call is not None and syscalls.is_futex(thread.call.number)
    }
    pids = [pid for pid in scan.reached if pid in waiting and pid not in scans]
    return pids[: _MAX_SCANS - len(scans)]


def _processes_without_scan(
    chains: Collection[Chain], scans: Mapping[int, ProcessScan]
) -> list[int]:
    """Return the processes of the chains that were not scanned, whose stacks are not known."""
    wanted = [pid for pid in _pids(chains) if pid not in scans]
    return wanted[: _MAX_SCANS - len(scans)]


class _SleepBegins:
    """Since when threads wait for locks: a deadlock lasts longer than most other waits."""

    def __init__(self, scan: WaitScan) -> None:
        self._host = scan.host
        self._clock = SleepClock()

    def earliest(self, pid: int) -> float:
        """Return since when a thread of a process waits for a lock, of time.monotonic()."""
        threads = self._host.threads(pid)
        waiters = [thread.tid for thread in threads if _is_contender(thread)] or [
            thread.tid
            for thread in threads
            if thread.call is not None and syscalls.is_futex(thread.call.number)
        ]
        begins = (self._clock.asleep_since(pid, tid) for tid in waiters[:_MAX_SLEEPS])
        return min((begin for begin in begins if begin is not None), default=inf)


class _Scanner:
    """Scans processes: in full until the time for that is spent, then briefly.

    Attributes:
        moved: The processes that were not scanned, as their threads did not wait on.
    """

    def __init__(
        self, may_move: Mapping[int, Sequence[HostThread]] | None = None, has_limit: bool = False
    ) -> None:
        """Args:
        may_move: by pid, the threads for which alone a process is scanned.
        has_limit: whether the time for full scans has a limit.
        """
        self.moved: set[int] = set()
        self._may_move = may_move or {}
        self._until = time.monotonic() + (FULL_SCANS_S if has_limit else inf)
        self._cpu_until = time.process_time() + (FULL_SCANS_CPU_S if has_limit else inf)
        self._brief: list[int] = []

    def scan(self, pid: int) -> ProcessScan:
        """Return the scan of a process; nothing of one whose threads have moved since."""
        threads = self._may_move.get(pid)
        if threads is not None and not still_wait(threads):
            self.moved.add(pid)
            return ProcessScan()
        is_full = time.monotonic() < self._until and time.process_time() < self._cpu_until
        if not is_full:
            self._brief.append(pid)
        return lock_waits.scan(pid, is_full)

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence about the processes that were scanned briefly; () if there are none."""
        if not self._brief:
            return ()
        pids = ", ".join(map(str, self._brief))
        return (
            f"probable holders of locks were not searched in {pids}; `locktop why PID` does so",
        )


def _pids(chains: Collection[Chain]) -> list[int]:
    """Return the processes in chains, each once."""
    pids = [chain.pid for chain in chains]
    return list(dict.fromkeys([*pids, *(s.thread.pid for chain in chains for s in chain.steps)]))


class _StepDetails:
    """Where in the code the threads of chains are, and since when they sleep."""

    def __init__(self, scans: Mapping[int, ProcessScan]) -> None:
        self._scans = scans
        self._clock = SleepClock()

    def add(self, chain: Chain) -> Chain:
        """Return a chain with the details of each step."""
        return replace(chain, steps=tuple(map(self._add, chain.steps)))

    def _add(self, step: ChainStep) -> ChainStep:
        """Return a step with the details of its thread, if the thread has not moved."""
        thread, awaited = step.thread, step.awaited
        if awaited is None:
            return step
        scan = self._scans.get(thread.pid, ProcessScan())
        frames = awaited.frames or scan.frames.get(thread.tid, ())
        duration_s, is_lower_bound = awaited.duration_s, awaited.is_lower_bound
        if not duration_s:
            since = self._clock.asleep_since(thread.pid, thread.tid)
            if since is not None:
                duration_s, is_lower_bound = time.monotonic() - since, True
        if not _has_not_run(thread):
            return step
        more = replace(awaited, frames=frames, duration_s=duration_s, is_lower_bound=is_lower_bound)
        return replace(step, awaited=more)
