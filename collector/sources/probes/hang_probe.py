"""Whether a whole process hangs: each thread waits for what only such a thread can do.

No holder need be known to prove that. Each thread sleeps in a futex call without a time limit. Its
word lies in memory that no other process shares. Only a thread of the process can end such a sleep
(futex(2)), and all of them sleep. The kernel is queried twice. A thread that got no CPU
between the two queries slept throughout. So at a moment between them all threads slept at once.

A signal handler, a debugger or io_uring can end such a sleep, too. Then the hang is not certain.
The same holds for a thread that writes to a full pipe, which no other process has open.

A thread may wait for the lock of a Python interpreter (the GIL). Such a thread wakes every 5 ms,
and asks again (take_gil in CPython's ceval_gil.c). Only a free lock lets the thread go on. If the
thread is in that wait at both queries, while all others slept, one of these keeps the lock.
"""

from __future__ import annotations

import os
import signal
import struct
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from locktop.collector.linux import futex, process_memory, procfs, syscall_format, syscalls
from locktop.collector.linux.futex import FutexWait
from locktop.collector.linux.threads import KernelThreads, ThreadMoment
from locktop.collector.model import Hang, Thread, ThreadState
from locktop.collector.model.kinds import POSTED_BY_HANDLERS_KINDS
from locktop.collector.symbols import memory_map
from locktop.collector.symbols.memory_map import AddressSpace
from locktop.collector.symbols.python.gil import is_at

_AT_ONCE = 64
_RUNS = frozenset({ThreadState.RUNNING, ThreadState.RUNNABLE})
_WORD = struct.Struct("=I")
_IO_URING = "anon_inode:[io_uring]"
#: Handlers of these report a crash. glibc takes 32 and 33 for itself.
_FATAL = frozenset({
    signal.SIGILL, signal.SIGTRAP, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV,
    signal.SIGSYS, signal.SIGPIPE, 32, 33,
})  # fmt: skip
_MAX_NAMED = 3
_NONE: Mapping[int, int] = {}
_GIL_S = 0.03  # several times the 5 ms of sys.setswitchinterval()
#: On a busy host a thread waits far longer for a CPU after each of its waits for the GIL.
_MAX_GIL_S = 0.3
_GIL_PAUSE_S = 0.001
_PIPE = "pipe:["
_PIPE_CALLS = frozenset({"read", "write", "readv", "writev"})


class _Sleep(NamedTuple):
    """The sleep of one thread."""

    counts: tuple[int, int, int]  # of ThreadMoment: each sleep has others
    since: float  # first query that showed it: time.monotonic()


class _PipeWait(NamedTuple):
    """A thread that waits in a call for room in a pipe, or for data."""

    call: str
    descriptor: int
    pipe: str  # "pipe:[1234]"
    text: str  # "write(4 -> pipe:[1234])"

    @property
    def is_for_room(self) -> bool:
        """Whether the pipe is full, and not empty."""
        return self.call.startswith("write")


class HangProbe:
    """Queries the kernel about all threads of a process in each scan.

    A thread that sleeps elsewhere is queried first in the next scan. So the queries of a process
    that does not hang end at the first answer.
    """

    def __init__(self, pid: int, tasks: KernelThreads) -> None:
        self._pid = pid
        self._tasks = tasks
        self._elsewhere = 0  # tid
        self._sleeps: dict[int, _Sleep] = {}  # by tid

    def probe(
        self, threads: Sequence[Thread], gil_waiters: Mapping[int, int] = _NONE
    ) -> Hang | None:
        """Return the hang of the process; None without one, and where the kernel does not tell.

        Args:
            threads: those of the scan. Their waits tell how long the hang lasts.
            gil_waiters: by tid, the address of the condition at which a thread waits for the GIL.
        """
        alive = {thread.tid: thread for thread in threads if thread.alive}
        others = [thread for tid, thread in alive.items() if tid not in gil_waiters]
        if not others or any(_goes_on(thread) for thread in others):
            return None
        try:
            return self._probe(alive, gil_waiters)
        except (OSError, ValueError):
            return None  # the process has ended, or may not be read

    def _probe(self, alive: Mapping[int, Thread], gil_waiters: Mapping[int, int]) -> Hang | None:
        of_gil = {tid: address for tid, address in gil_waiters.items() if tid in alive}
        endless = self._waits([tid for tid in alive if tid not in of_gil])
        if not endless or not self._are_all([*endless, *of_gil]):
            return None
        if of_gil and not self._wait_on_for_gil(of_gil):
            return None
        waits = {tid: wait for tid, wait in endless.items() if isinstance(wait, FutexWait)}
        pipes = [wait for wait in endless.values() if isinstance(wait, _PipeWait)]
        is_private = self._privacy(waits.values()) and _are_of(self._pid, pipes)
        words = self._changed_words(waits)
        again = self._tasks.moments(endless)
        asleep = all(
            tid in again
            and again[tid].state == "S"
            and again[tid].counts == self._sleeps[tid].counts
            for tid in endless
        )
        if not is_private or not asleep or not self._are_all([*endless, *of_gil]):
            return None
        signals = self._caught_signals()
        if of_gil:
            # Python's own handler only notes the signal: the rest needs the GIL.
            signals = [name for name in signals if name != signal.SIGINT.name]
        elif signals and _may_idle(alive.values(), pipes):
            return None
        doubt = self._doubt(signals, pipes)
        since_s, is_lower_bound = self._since(alive)
        return Hang(
            certain=not doubt,
            since_s=since_s,
            tids=tuple(sorted([*endless, *of_gil])),
            is_lower_bound=is_lower_bound,
            doubt=doubt,
            changed_words=words,
            gil_waiters=tuple(sorted(of_gil)),
            calls={tid: wait.text for tid, wait in endless.items() if isinstance(wait, _PipeWait)},
        )

    def _wait_on_for_gil(self, of_gil: Mapping[int, int]) -> bool:
        """Return whether these threads still wait for the GIL after several of their tries."""
        time.sleep(_GIL_S)
        left, deadline = set(of_gil), time.monotonic() + _MAX_GIL_S
        while left and time.monotonic() < deadline:
            for tid, moment in self._tasks.moments(sorted(left)).items():
                call = moment.call if moment.state == "S" else None
                wait = futex.parse_wait(self._pid, call) if call is not None else None
                if wait is not None and is_at(wait.address, of_gil[tid]):
                    left.discard(tid)
            time.sleep(_GIL_PAUSE_S if left else 0.0)
        return not left

    def _waits(self, alive: Collection[int]) -> dict[int, FutexWait | _PipeWait]:
        """Return the waits of all threads by tid; none if one of them can go on."""
        order = sorted(alive, key=lambda tid: tid != self._elsewhere)
        before, self._sleeps = self._sleeps, {}
        waits: dict[int, FutexWait | _PipeWait] = {}
        begin, size = 0, 1
        while begin < len(order):
            tids = order[begin : begin + size]
            begin, size = begin + size, _AT_ONCE
            moments, now = self._tasks.moments(tids), time.monotonic()
            for tid in tids:
                moment = moments.get(tid)
                wait = self._endless_wait(moment)
                if moment is None or wait is None:
                    self._elsewhere = tid
                    return {}
                former = before.get(tid)
                goes_on = former is not None and former.counts == moment.counts
                self._sleeps[tid] = (
                    former if former is not None and goes_on else _Sleep(moment.counts, now)
                )
                waits[tid] = wait
        return waits

    def _endless_wait(self, moment: ThreadMoment | None) -> FutexWait | _PipeWait | None:
        """Return the wait of a thread that sleeps in a futex call without a time limit.

        Also return that of a thread that writes to a pipe, or reads from one.
        """
        if moment is None or moment.state != "S" or moment.call is None or not moment.counts[2]:
            return None
        name = syscalls.name(moment.call.number)
        if name in _PIPE_CALLS:
            descriptor = moment.call.arguments[0]
            file = os.readlink(f"{procfs.shared_directory(self._pid)}/fd/{descriptor}")
            if not file.startswith(_PIPE):
                return None
            text = syscall_format.describe(self._pid, moment.call)
            return _PipeWait(name, descriptor, file, text)
        wait = futex.parse_wait(self._pid, moment.call)
        return wait if wait is not None and not wait.timed and not wait.is_first_of_many else None

    def _are_all(self, waits: Collection[int]) -> bool:
        """Return whether no other thread of the process lives."""
        kernel_tids = {self._tasks.kernel_tid(tid) for tid in waits}
        others = set(procfs.tids(self._pid)) - kernel_tids
        # The first thread stays as a zombie if it ends before the others.
        return all(procfs.thread_stat(self._pid, tid).state in "ZX" for tid in others)

    def _privacy(self, waits: Collection[FutexWait]) -> bool:
        """Return whether no other process can wake one of the waiters."""
        shared = {wait.address for wait in waits if not wait.private}
        if not shared:
            return True
        space = AddressSpace(memory_map.parse(procfs.maps(self._pid)))
        mappings = [space.find(address) for address in shared]
        return all(mapping is not None and not mapping.shared for mapping in mappings)

    def _changed_words(self, waits: Mapping[int, FutexWait]) -> dict[int, int]:
        """Return by tid the values of words that are no longer those that the threads wait with."""
        plain = {tid: wait for tid, wait in waits.items() if not wait.inherits}
        wanted = [(wait.address, _WORD.size) for wait in plain.values()]
        changed = {}
        for (tid, wait), data in zip(
            plain.items(), process_memory.read_many(self._pid, wanted), strict=True
        ):
            if len(data) == _WORD.size and (value := _WORD.unpack(data)[0]) != wait.value:
                changed[tid] = value
        return changed

    def _caught_signals(self) -> list[str]:
        """Return the names of the signals whose handlers may do what a thread waits for."""
        numbers = sorted(procfs.caught_signals(self._pid) - _FATAL)
        return [_signal_name(number) for number in numbers]

    def _doubt(self, signals: Sequence[str], pipes: Sequence[_PipeWait]) -> str:
        if pipes:
            way = "reads from" if pipes[0].is_for_room else "writes to"
            return f"something else {way} descriptor {pipes[0].descriptor}, {pipes[0].pipe}"
        if procfs.tracer(self._pid):
            return "a debugger may change the process"
        if _IO_URING in procfs.open_files(self._pid):
            return "io_uring may wake a thread"
        if not signals:
            return ""
        more = f" and {len(signals) - _MAX_NAMED} more" if len(signals) > _MAX_NAMED else ""
        return f"a handler of {', '.join(signals[:_MAX_NAMED])}{more} may wake a thread"

    def _since(self, alive: Mapping[int, Thread]) -> tuple[float, bool]:
        """Return the seconds since the last of the waits began, and whether that is the least."""
        now = time.monotonic()
        lasted: list[tuple[float, bool]] = []
        for tid, sleep in self._sleeps.items():  # each wait for the GIL takes 5 ms
            wait = alive[tid].waiting_for
            if wait is not None:
                lasted.append((wait.duration_s, wait.is_lower_bound))
            else:
                began = self._tasks.asleep_since(tid)
                since = sleep.since if began is None else min(began, sleep.since)
                lasted.append((now - since, True))
        return min(lasted)


def _may_idle(threads: Collection[Thread], pipes: Sequence[_PipeWait]) -> bool:
    """Return whether a signal handler may be what an idle program waits for.

    Handlers post semaphores and write to pipes. Of locks they know nothing.
    """
    if pipes:
        return any(not wait.is_for_room for wait in pipes)
    waits = [thread.waiting_for for thread in threads if thread.waiting_for is not None]
    return any(wait.kind in POSTED_BY_HANDLERS_KINDS for wait in waits)


def _are_of(pid: int, pipes: Sequence[_PipeWait]) -> bool:
    """Return whether no other process has one of these pipes open, as far as we may know."""
    wanted = {wait.pipe for wait in pipes}
    if not wanted:
        return True
    for other in procfs.pids():
        if other == pid:
            continue
        with suppress(OSError):  # it has ended, or belongs to another user
            if not wanted.isdisjoint(procfs.open_files(other)):
                return False
    return True


def _goes_on(thread: Thread) -> bool:
    wait = thread.waiting_for
    return thread.state in _RUNS or (wait is not None and wait.timed)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
