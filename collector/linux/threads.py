"""What /proc says about the threads of one process, look after look."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from locktop.collector.linux import procfs, syscalls
from locktop.collector.linux.syscalls import SystemCall
from locktop.collector.linux.thread_files import TaskRecord, ThreadFiles
from locktop.collector.model import Switches
from locktop.collector.native import lib
from locktop.collector.sanitize import clean

#: A thread that stays in one wait is asked again only every so many looks (its name may change).
_ROUNDS = 16
#: Where a call may not be seen it is asked for again after so long: Yama writes a line to the
#: kernel's log each time.
_AGAIN_S = 30.0
_UNSEEN = SystemCall(-1, (), 0, 0)
_NOBODY = 1 << 22  # PID_MAX_LIMIT (include/linux/threads.h)
_SCHED: int = lib.LT_TASK_SCHED
_DISK: int = lib.LT_TASK_DISK


class KernelThread(NamedTuple):
    """One living thread as the kernel shows it."""

    name: str
    state: str  # letter
    cpu_s: float
    raw_name: bytes = b""  # as the kernel gives it
    at_s: float = 0.0  # when it was read, on the monotonic clock
    #: What the scheduler counts since the thread began, nanoseconds: on a CPU (up to the last tick
    #: of the clock), in the queue for one (up to the last time that it got one), and how often it
    #: got one; all 0 where the kernel does not count.
    ran_ns: int = 0
    queued_ns: int = 0
    runs: int = 0
    disk_ticks: int | None = None  # waited for disks, clock ticks; None where it does not count


class ThreadMoment(NamedTuple):
    """What one thread does at one moment."""

    state: str  # letter
    #: In which it sleeps, None while it runs; without a pc where that may not be seen.
    call: SystemCall | None
    #: What the scheduler counts of it: the same thread that slept all the while has the same.
    counts: tuple[int, int, int]


class KernelThreads:
    """The living threads by tid, as the process's own pid namespace counts them."""

    def __init__(self, pid: int, own_pid: int, share: float = 0.75) -> None:
        """``share``: see ThreadFiles."""
        self._pid = pid
        self._same_ids = pid == own_pid
        self._own_tids: dict[int, int] = {}
        self._kernel_tids: dict[int, int] = {}
        self._known: dict[int, tuple[object, KernelThread]] = {}
        self._files = ThreadFiles(pid, share)
        self._disk_counts, self._all_disk_counts = procfs.counts_disk_waits()
        self._round = 0
        self._refused_until = 0.0  # time.monotonic()
        self.living: Collection[int] = ()  # by the last read(), as our own pid namespace counts

    def close(self) -> None:
        """Close what is kept open."""
        self._files.close()

    def read(self, waits: Mapping[int, object]) -> dict[int, KernelThread]:
        """Return the tasks. ``waits`` identifies by tid the wait that a thread is in: one that was
        in the same wait at the look before has used no processor time since, and its task is the
        same object."""
        self._round += 1
        known: dict[int, tuple[object, KernelThread]] = {}
        self.living = kernel_tids = self._files.tids()
        self._files.keep_only(kernel_tids)
        wanted: list[int] = []
        for kernel_tid, tid in self._both_tids(kernel_tids):
            wait, before = waits.get(tid), self._known.get(tid)
            due = (self._round + tid) % _ROUNDS == 0
            if before is not None and wait is not None and before[0] == wait and not due:
                known[tid] = before
            else:
                wanted.append(kernel_tid)
        for kernel_tid, raw in zip(wanted, self._raw(wanted), strict=True):
            if raw is None:
                self._own_tids.pop(kernel_tid, None)  # it may come back with another thread
            elif chr(raw.state) not in "ZX":
                tid = kernel_tid if self._same_ids else self._own_tids[kernel_tid]
                seen = self._known.get(tid)
                known[tid] = waits.get(tid), self._task(raw, seen[1] if seen else None)
        self._known = known
        return {tid: task for tid, (_, task) in known.items()}

    def keep_only(self, kernel_tids: Collection[int]) -> None:
        """Let go of all others, where read() is not called."""
        self._files.keep_only(kernel_tids)

    def _both_tids(self, kernel_tids: Sequence[int]) -> Iterable[tuple[int, int]]:
        """Each with the id that the process itself knows."""
        if self._same_ids:
            return zip(kernel_tids, kernel_tids, strict=True)
        known, self._own_tids = self._own_tids, {}
        for kernel_tid in kernel_tids:
            with suppress(OSError, ValueError, IndexError):  # it ended in between
                own = known.get(kernel_tid) or procfs.own_tid(self._pid, kernel_tid)
                self._own_tids[kernel_tid] = own
        self._kernel_tids = {own: kernel for kernel, own in self._own_tids.items()}
        return self._own_tids.items()

    def _raw(self, kernel_tids: Sequence[int], calls: bool = False) -> list[TaskRecord | None]:
        """Read the threads' files; None of one that has ended. Those of a thread whose files were
        kept open are opened anew: another one may have its id by now."""
        found = self._files.read(kernel_tids, calls)
        gone = [tid for tid, raw in zip(kernel_tids, found, strict=True) if raw is None]
        if not gone:
            return found
        again = iter(self._files.read(gone, calls))
        return [next(again) if raw is None else raw for raw in found]

    def _task(self, raw: TaskRecord, before: KernelThread | None) -> KernelThread:
        raw_name = raw.name[: raw.name_size]
        known = before is not None and before.raw_name == raw_name
        counted = raw.known & _SCHED
        return KernelThread(
            before.name if before is not None and known else clean(raw_name),
            chr(raw.state),
            raw.cpu_ticks * procfs.CLOCK_TICK_S,
            raw_name,
            raw.at_ns / 1e9,
            raw.ran_ns if counted else 0,
            raw.queued_ns if counted else 0,
            raw.runs if counted else 0,
            self._disk_ticks(raw) if self._disk_counts else None,
        )

    def _disk_ticks(self, raw: TaskRecord) -> int | None:
        if not raw.known & _DISK:
            return None
        return raw.disk_ticks if raw.disk_ticks or self._all_disk_counts else None

    def are_asleep(self, tids: Iterable[int]) -> bool:
        """Tell whether none of these is running or about to, whatever a look said of it before."""
        raws = self._raw([self.kernel_tid(tid) for tid in tids])
        return all(raw is not None and chr(raw.state) != "R" for raw in raws)

    def asleep(self, tids: Iterable[int]) -> dict[int, int]:
        """Return of those threads that sleep now how often each was put on a CPU before; of none
        where the kernel does not count that."""
        wanted = list(tids)
        raws = self._raw([self.kernel_tid(tid) for tid in wanted])
        return {
            tid: raw.runs
            for tid, raw in zip(wanted, raws, strict=True)
            if raw is not None and chr(raw.state) == "S" and raw.known & _SCHED and raw.runs
        }

    def states(self, tids: Iterable[int]) -> dict[int, str]:
        """Return the letters of the threads' states as they are now, "" for one that is no more."""
        return {tid: self._state(tid) for tid in tids}

    def _state(self, tid: int) -> str:
        (raw,) = self._raw([self.kernel_tid(tid)])
        state = chr(raw.state) if raw is not None else ""
        return "" if state in "ZX" else state

    def moments(self, tids: Iterable[int]) -> dict[int, ThreadMoment]:
        """Return what these threads do, without those that are no more. That one sleeps is so only
        if still_sleeps() says it afterwards."""
        wanted = {tid: self.kernel_tid(tid) for tid in tids}
        found = {}
        for tid, raw in zip(wanted, self._with_calls(list(wanted.values())), strict=True):
            if raw is not None and (state := chr(raw.state)) not in "ZX":
                call = _call(raw.call[: raw.call_size]) if raw.call_size else _UNSEEN
                found[tid] = ThreadMoment(state, call, (raw.ran_ns, raw.queued_ns, raw.runs))
        return found

    def _with_calls(self, kernel_tids: Sequence[int]) -> list[TaskRecord | None]:
        """As far as calls may be seen."""
        if time.monotonic() >= self._refused_until:
            try:
                return self._raw(kernel_tids, calls=True)
            except PermissionError:
                self._refused_until = time.monotonic() + _AGAIN_S
        return self._raw(kernel_tids)

    def still_sleeps(self, tid: int) -> bool:
        """Tell whether a thread slept when moments() was asked last, and was on no CPU since;
        False where the kernel does not count that."""
        return self._files.still_sleeps(self.kernel_tid(tid))

    def sleeps_in(self, tid: int) -> str:
        """Return the kernel's function in which a thread sleeps, such as "futex_do_wait"; "" or "0"
        where the kernel does not say. Asked of many right after read(): ids are as they were then.
        """
        try:
            kernel_tid = self._kernel_tids.get(tid) or self.kernel_tid(tid)
            return procfs.thread_wchan(self._pid, kernel_tid)
        except OSError:
            return ""

    def call(self, tid: int) -> SystemCall | None:
        """Return the system call in which a thread sleeps; None while it runs. Raises OSError where
        it has ended, PermissionError where that may not be seen."""
        if time.monotonic() < self._refused_until:
            raise PermissionError
        try:
            return _call(procfs.thread_syscall(self._pid, self.kernel_tid(tid)))
        except PermissionError:
            self._refused_until = time.monotonic() + _AGAIN_S
            raise

    def kernel_tid(self, tid: int) -> int:
        """Return the id of a thread as our own pid namespace counts; one that nobody has where it
        has ended."""
        if self._same_ids:
            return tid
        known = self._kernel_tids.get(tid, _NOBODY)
        if known == _NOBODY or self._asked(known) != tid:
            self._own_tids.clear()
            self._kernel_tids.clear()
            with suppress(OSError):  # the process has ended
                self._both_tids(procfs.tids(self._pid))
        return self._kernel_tids.get(tid, _NOBODY)

    def _asked(self, kernel_tid: int) -> int:
        try:
            return procfs.own_tid(self._pid, kernel_tid)
        except (OSError, ValueError, IndexError):
            return _NOBODY

    def switches(self, tid: int) -> Switches | None:
        """Return how often a thread changed its CPU for sleep or another CPU, None where the kernel
        does not tell. Raises OSError where it has ended."""
        kernel_tid = self.kernel_tid(tid)
        try:
            voluntary, involuntary = procfs.thread_switches(self._pid, kernel_tid)
        except (ValueError, KeyError):
            return None
        try:
            return Switches(voluntary, involuntary, procfs.thread_migrations(self._pid, kernel_tid))
        except (OSError, ValueError, KeyError):
            return Switches(voluntary, involuntary, None)

    def start_time(self, tid: int) -> int:
        """Return when a thread began, clock ticks since boot. Raises OSError where it has ended."""
        return procfs.thread_stat(self._pid, self.kernel_tid(tid)).start_time

    def runs(self, tid: int) -> int:
        """Return how often a thread was put on a CPU, 0 where the kernel does not count. Raises
        OSError where it has ended."""
        (raw,) = self._raw([self.kernel_tid(tid)])
        if raw is None:
            raise ProcessLookupError
        return raw.runs if raw.known & _SCHED else 0


def _call(data: bytes) -> SystemCall | None:
    try:
        return syscalls.parse(data)
    except ValueError:
        return None
