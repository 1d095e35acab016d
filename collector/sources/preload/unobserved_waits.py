"""Waits in futex calls that the library does not observe: which threads, for what, where, how long.

Such calls are compiled into a program or a runtime (OpenMP, Go), or lie inside libc. Or the wait
began before the library watched the thread.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping

from msgspec.structs import replace

from locktop.collector.analysis.idle.classifier import Classifier
from locktop.collector.analysis.idle.rules import IdleRule
from locktop.collector.linux import futex
from locktop.collector.linux.threads import KernelThread, KernelThreads
from locktop.collector.model import Draft, Frame, Thread, ThreadState, UnobservedWait
from locktop.collector.shm import layout
from locktop.collector.shm.reader import RawThread, Reader
from locktop.collector.shm.segment import SharedMemory
from locktop.collector.sources.preload.unobserved_locks import KernelWait
from locktop.collector.sources.probes.native_stacks import NativeStacks
from locktop.collector.symbols.resolver import Resolver

#: Threads queried in one scan, some 50 us each, and the time for a new stack.
_MAX_QUERIED = 32
MAX_KEPT = 1000
_STATES = {True: ThreadState.IDLE, False: ThreadState.WAITING, None: ThreadState.OTHER}
#: Threads checked in one scan, some 10 us each. A thread in an observed wait needs no check.
_MAX_CHECKED = 64
_SEQ_AND_KEY = struct.Struct("=I4xQ")  # the head of struct lt_wait

_NOTE = (
    "some threads wait in futex calls that do not pass through the library (compiled in, as in"
    " OpenMP and Go, or inside libc, or begun before the watch): the holders are not known"
)


def find_waiters(
    threads: Mapping[int, KernelThread],
    newest: Mapping[int, RawThread],
    tasks: KernelThreads,
    reader: Reader,
    memory: SharedMemory,
) -> tuple[int, ...]:
    """Return the threads in unobserved waits, in order of tid; of many sleepers only the first.

    Args:
        threads: the kernel's view of the threads in this scan.
        newest: the library's view of the threads in this scan.
        tasks: reads the kernel's files of the threads.
        reader: reads the threads' blocks again.
        memory: the shared memory.
    """
    may_wait = [tid for tid, task in threads.items() if _may_wait(task, newest.get(tid))]
    queried = sorted(may_wait)[:_MAX_CHECKED]
    blocks = {tid: newest[tid] for tid in queried if tid in newest}
    before = {tid: _published_wait(raw, memory) for tid, raw in blocks.items()}
    inside = [tid for tid in queried if tasks.sleeps_in(tid).startswith("futex")]
    # Meanwhile the library may have seen a wait begin, and even end.
    arrived = reader.read_threads() if any(tid not in blocks for tid in inside) else {}
    return tuple(
        tid
        for tid in inside
        if (_saw_no_wait(before[tid], blocks[tid], memory) if tid in blocks else tid not in arrived)
    )


def annotate_waiters(snapshot: Draft, waiters: tuple[int, ...]) -> None:
    """Mark these threads as not idle, because their waits may be for work or for a holder."""
    if not waiters:
        return
    snapshot.threads = tuple(
        replace(thread, state=ThreadState.OTHER) if thread.tid in waiters else thread
        for thread in snapshot.threads
    )
    snapshot.unobserved_waiters = waiters
    if snapshot.level != "dormant":  # a dormant library observes no wait, and another note says so
        snapshot.notes = (*snapshot.notes, _NOTE)


def _may_wait(task: KernelThread, raw: RawThread | None) -> bool:
    return task.state == "S" and (raw is None or raw.wait is None)


def _published_wait(raw: RawThread, memory: SharedMemory) -> tuple[int, int]:
    """Return the sequence number of the thread's wait as the library shows it now, and its key or
    0.
    """
    seq, key = _SEQ_AND_KEY.unpack(memory.read(raw.offset + layout.WAIT_AT, _SEQ_AND_KEY.size))
    return seq, key


def _saw_no_wait(before: tuple[int, int], raw: RawThread, memory: SharedMemory) -> bool:
    seq, key = before
    return not seq & 1 and not key and _published_wait(raw, memory) == before


class UnobservedWaitProbe:
    """Queries the kernel about these waits in each scan.

    A wait has lasted since the first scan that found it, or for as long as the kernel tells.
    """

    def __init__(
        self,
        pid: int,
        tasks: KernelThreads,
        stacks: NativeStacks,
        resolver: Resolver,
        rules: Classifier,
    ) -> None:
        self._pid = pid
        self._tasks = tasks
        self._stacks = stacks
        self._resolver = resolver
        self._rules = rules
        #: The waits of the last query, by tid.
        self.waits: dict[int, KernelWait] = {}
        self._refused: list[int] = []  # tids whose calls the kernel does not show
        #: By stack and name of the thread: the named frames, and the type and rule that they imply.
        self._verdicts: dict[tuple[int, str], tuple[tuple[Frame, ...], str, IdleRule | None]] = {}

    def query(self, runs: Mapping[int, int]) -> None:
        """Query the kernel about threads in unobserved waits.

        Args:
            runs: by tid, how often the kernel had put each on a CPU before it was found waiting. A
                thread that has not run since the last scan is unchanged.
        """
        before, self.waits, self._refused = self.waits, {}, []
        for tid, count in sorted(runs.items())[:_MAX_QUERIED]:
            try:
                wait = self._query(tid, count, before.get(tid))
            except PermissionError:
                self._refused.append(tid)
            except OSError:
                continue  # the thread ended meanwhile
            else:
                if wait is not None:
                    self.waits[tid] = wait

    def _query(self, tid: int, runs: int, former: KernelWait | None) -> KernelWait | None:
        """Return None if the thread is in another sleep by now, perhaps in one that the library
        observes.
        """
        if former is not None and former.runs == runs and former.stack:
            return former
        call = self._tasks.call(tid)
        wait = futex.parse_wait(self._pid, call) if call is not None else None
        if wait is None:
            return None
        stack = self._stacks.stack_id(self._tasks.kernel_tid(tid), (call, runs), entered=True)
        goes_on = former is not None and former.runs == runs
        since = former.since if former is not None and goes_on else self._tasks.asleep_since(tid)
        if not runs or self._tasks.runs(tid) != runs:
            return None
        since = time.monotonic() if since is None else since
        return KernelWait(tid=tid, runs=runs, futex=wait, since=since, stack=stack)

    def still_waiting(self) -> list[KernelWait]:
        """Return the waits of the last query that go on."""
        try:
            asleep = self._tasks.asleep(self.waits)
        except OSError:
            return []
        return [wait for tid, wait in self.waits.items() if asleep.get(tid) == wait.runs]

    def annotate(self, snapshot: Draft) -> None:
        """Fill in the results of ``query``, and the meaning of the functions' names for each wait.

        The known frames of the stacks of these waits are added too.
        """
        listed = [wait for wait in self.waits.values() if wait.tid in snapshot.unobserved_waiters]
        if not listed and not self._refused:
            return
        frames = {wait.stack: self._stacks.frames(wait.stack) for wait in listed if wait.stack}
        threads = {thread.tid: thread for thread in snapshot.threads}
        now = time.monotonic()
        unnamed = [
            UnobservedWait(
                tid=wait.tid,
                address=wait.futex.address,
                duration_s=now - wait.since,
                stack=wait.stack,
            )
            for wait in listed
        ]
        waits = (
            *[UnobservedWait(tid=tid) for tid in self._refused],
            *[
                self._name_wait(wait, frames.get(wait.stack, ()), threads.get(wait.tid))
                for wait in unnamed
            ],
        )
        states = {wait.tid: _STATES[wait.idle] for wait in waits}
        snapshot.stacks = {**snapshot.stacks, **frames}
        snapshot.unobserved_waits = waits
        snapshot.threads = tuple(
            replace(thread, state=states[thread.tid]) if thread.tid in states else thread
            for thread in snapshot.threads
        )

    def request_names(self) -> None:
        """Request the names of the functions and futexes of the waits that ``query`` found."""
        for wait in self.waits.values():
            self._resolver.data(wait.futex.address)
            if wait.stack:
                self._stacks.frames(wait.stack)

    def _name_wait(
        self, wait: UnobservedWait, frames: tuple[Frame, ...], thread: Thread | None
    ) -> UnobservedWait:
        stack, name = wait.stack, thread.name if thread is not None else ""
        verdict = self._verdicts.get((stack, name))
        if verdict is None or verdict[0] is not frames:
            if len(self._verdicts) >= MAX_KEPT:
                self._verdicts.clear()
            verdict = self._verdicts[stack, name] = (
                frames,
                *self._rules.classify_stack(frames, name),
            )
        _, type_, rule = verdict
        variable = self._resolver.data(wait.address) or ""
        if rule is None:
            return replace(wait, name=variable, type=type_)
        return replace(wait, name=variable, type=type_, idle=rule.idle, why=rule.name)
