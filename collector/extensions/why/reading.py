"""Reads why processes wait: two scans of the machine, and one of each process on the way."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from msgspec.structs import replace

from locktop.collector.extensions.why import lock_waits, wait_chains
from locktop.collector.extensions.why.lock_waits import ProcessScan
from locktop.collector.extensions.why.model import DEADLOCKED, Chain, ChainStep, WhyAnswer
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


def why(pids: Sequence[int]) -> WhyAnswer:
    """Return why these processes wait.

    Raises:
        LocktopError: there is no such process.
    """
    for pid in pids:
        find_process(pid)
    return _answer(pids, WaitScan(pids, {}), time.monotonic())


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
    stuck = stuck_threads(first, WaitScan(everybody, {})).possible
    at_locks = _lock_contenders(first)
    pids = [
        pid
        for pid in everybody
        if pid in at_locks or any(thread.tid in stuck for thread in first.host.threads(pid))
    ]
    if not pids:
        count, scan_s = len(everybody), time.monotonic() - begin
        return WhyAnswer((), count, {}, {}, hidden=_hidden(first), scan_s=scan_s)
    answer = _answer(pids, WaitScan(pids, {}), begin)
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


def _lock_contenders(scan: WaitScan) -> set[int]:
    """Return the processes of which several threads wait for locks whose word says so.

    The word of a mutex of glibc, and of one of Rust, is 2 while threads wait for it.
    """
    counts: Counter[int] = Counter()
    for thread in scan.threads.values():
        wait = futex.parse_wait(thread.pid, thread.call) if thread.call is not None else None
        if wait is not None and not wait.timed and wait.value == _CONTENDED:
            counts[thread.pid] += 1
    return {pid for pid, count in counts.items() if count > 1}


def _answer(pids: Sequence[int], calls: WaitScan, begin: float) -> WhyAnswer:
    """Return the answer. ``calls``: a scan without locks; ``begin``: a time.monotonic()."""
    scans: dict[int, ProcessScan] = {}
    first = calls
    # The owner of a lock may be in a process that the calls alone do not lead to.
    while new := _lock_waiters(first, scans):
        scans |= {pid: lock_waits.scan(pid) for pid in new}
        first = WaitScan(pids, scans)
    time.sleep(_BETWEEN_S)
    stuck = stuck_threads(first, WaitScan(pids, scans))
    chains = [wait_chains.chain(pid, first, stuck) for pid in pids]
    scans |= _missing_scans(chains, scans)
    details = _StepDetails(scans)
    return WhyAnswer(
        chains=tuple(map(details.add, chains)),
        scanned=len(first.host.processes),
        names={pid: first.host.name(pid) for pid in {*first.reached, *_pids(chains)}},
        thread_names={tid: name for scan in scans.values() for tid, name in scan.names.items()},
        waits=first.groups(),
        hidden=_hidden(first),
        scan_s=time.monotonic() - begin,
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


def _missing_scans(
    chains: Collection[Chain], scans: Mapping[int, ProcessScan]
) -> dict[int, ProcessScan]:
    """Return scans of the processes of the chains that were not scanned, for their stacks."""
    wanted = [pid for pid in _pids(chains) if pid not in scans]
    return {pid: lock_waits.scan(pid) for pid in wanted[: _MAX_SCANS - len(scans)]}


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
        try:
            is_same = procfs.thread_runs(thread.pid, thread.tid) == thread.runs
        except (OSError, ValueError):
            is_same = False
        if not is_same:
            return step
        more = replace(awaited, frames=frames, duration_s=duration_s, is_lower_bound=is_lower_bound)
        return replace(step, awaited=more)
