"""What /proc says about the threads of one process, look after look."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from locktop.collector import procfs, syscalls
from locktop.collector.model import Switches
from locktop.collector.procfs import Sched
from locktop.collector.sanitize import clean
from locktop.collector.syscalls import Call

#: Fields of a stat line, counted from the state (proc_pid_stat(5)): user time, then system time;
#: the time waited for block devices.
_CPU, _DISK = 11, 39
#: A thread that stays in one wait is asked again only every so many looks (its name may change).
_ROUNDS = 16
_MOST_KEPT = 4096  # open files of one sort


@dataclass(frozen=True, slots=True)
class Task:
    """One living thread as the kernel shows it."""

    name: str
    state: str  # letter
    cpu_s: float
    raw_name: bytes = b""  # as the kernel gives it
    at_s: float = 0.0  # when it was read, on the monotonic clock
    sched: Sched | None = None  # None where the kernel does not count
    disk_ticks: int | None = None  # waited for disks, clock ticks; None where it does not count


class Tasks:
    """The living threads by tid, as the process's own pid namespace counts them."""

    def __init__(self, pid: int, own_pid: int) -> None:
        self._pid = pid
        self._same_ids = pid == own_pid
        self._own_tids: dict[int, int] = {}
        self._kernel_tids: dict[int, int] = {}
        self._known: dict[int, tuple[object, Task]] = {}
        self._stats = _OpenFiles(pid, "stat")
        self._scheds = _OpenFiles(pid, "schedstat")
        self._disk_counts, self._all_disk_counts = procfs.counts_disk_waits()
        self._round = 0

    def close(self) -> None:
        """Close what is kept open."""
        self._stats.close()
        self._scheds.close()

    def read(self, waits: Mapping[int, object]) -> dict[int, Task]:
        """Return the tasks. ``waits`` identifies by tid the wait that a thread is in: one that was
        in the same wait at the look before has used no processor time since, and its task is the
        same object."""
        self._round += 1
        found: dict[int, Task] = {}
        known: dict[int, tuple[object, Task]] = {}
        kernel_tids = procfs.tids(self._pid)
        self._stats.keep_only(kernel_tids)
        self._scheds.keep_only(kernel_tids)
        for kernel_tid in kernel_tids:
            task = self._task(kernel_tid, waits)
            if task is not None and task[2].state not in "ZX":
                tid, wait, about = task
                found[tid] = about
                known[tid] = (wait, about)
        self._known = known
        return found

    def _task(
        self, kernel_tid: int, waits: Mapping[int, object]
    ) -> tuple[int, object, Task] | None:
        try:
            tid = kernel_tid if self._same_ids else self._own_tid(kernel_tid)
            wait = waits.get(tid)
            before = self._known.get(tid)
            due = (self._round + tid) % _ROUNDS == 0
            if before is not None and wait is not None and before[0] == wait and not due:
                return tid, wait, before[1]
            about = self._read(kernel_tid, before[1] if before else None)
        except (OSError, ValueError, IndexError):
            return None  # it ended in between
        return tid, wait, about

    def _read(self, kernel_tid: int, before: Task | None) -> Task:
        line = self._stats.read(kernel_tid)
        name_at, name_end = line.index(b"(") + 1, line.rindex(b")")
        raw_name = line[name_at:name_end]
        fields = line[name_end + 2 :].split(b" ", _DISK + 1 if self._disk_counts else _CPU + 2)
        known = before is not None and before.raw_name == raw_name
        return Task(
            name=before.name if before is not None and known else clean(raw_name),
            state=chr(fields[0][0]),
            cpu_s=(int(fields[_CPU]) + int(fields[_CPU + 1])) * procfs.CLOCK_TICK_S,
            raw_name=raw_name,
            at_s=time.monotonic(),
            sched=self._sched(kernel_tid),
            disk_ticks=self._disk_ticks(fields) if self._disk_counts else None,
        )

    def _sched(self, kernel_tid: int) -> Sched | None:
        try:
            sched = procfs.parse_sched(self._scheds.read(kernel_tid))
        except (OSError, ValueError):
            return None
        return sched if sched.runs else None  # who is there has run, or is about to

    def _disk_ticks(self, fields: list[bytes]) -> int | None:
        ticks = int(fields[_DISK])
        return ticks if ticks or self._all_disk_counts else None

    def _own_tid(self, kernel_tid: int) -> int:
        tid = self._own_tids.get(kernel_tid)
        if tid is None:
            tid = self._own_tids[kernel_tid] = procfs.own_tid(self._pid, kernel_tid)
            self._kernel_tids[tid] = kernel_tid
        return tid

    def are_asleep(self, tids: Iterable[int]) -> bool:
        """Tell whether none of these is running or about to, whatever a look said of it before."""
        try:
            lines = [self._stats.read(self.kernel_tid(tid)) for tid in tids]
            return all(_state_of(line) != "R" for line in lines)
        except (OSError, ValueError, IndexError):
            return False  # one has ended

    def states(self, tids: Iterable[int]) -> dict[int, str]:
        """Return the letters of the threads' states as they are now, "" for one that is no more."""
        return {tid: self._state(tid) for tid in tids}

    def _state(self, tid: int) -> str:
        try:
            if not self._same_ids and tid not in self._kernel_tids:
                for kernel_tid in procfs.tids(self._pid):
                    self._own_tid(kernel_tid)
            kernel_tid = tid if self._same_ids else self._kernel_tids[tid]
            state = _state_of(self._stats.read(kernel_tid))
        except (OSError, KeyError, ValueError, IndexError):
            return ""
        return "" if state in "ZX" else state

    def kernel_tid(self, tid: int) -> int:
        """Return a thread's id as our own pid namespace counts."""
        return self._kernel_tids.get(tid, tid)

    def sleeps_in(self, tid: int) -> str:
        """Return the kernel's function in which a thread sleeps, such as "futex_do_wait"; "" or "0"
        where the kernel does not say."""
        try:
            return procfs.thread_wchan(self._pid, self.kernel_tid(tid))
        except OSError:
            return ""

    def call(self, tid: int) -> Call | None:
        """Return the system call in which a thread sleeps; None while it runs. Raises OSError where
        it has ended, PermissionError where that may not be seen."""
        try:
            return syscalls.parse(procfs.thread_syscall(self._pid, self.kernel_tid(tid)))
        except ValueError:
            return None

    def kernel_tid(self, tid: int) -> int:
        """Return the id of a thread as our own pid namespace counts."""
        return self._kernel_tids.get(tid, tid)

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

    def runs(self, tid: int) -> int:
        """Return how often a thread was put on a CPU, 0 where the kernel does not count. Raises
        OSError where it has ended."""
        try:
            return procfs.thread_runs(self._pid, self.kernel_tid(tid))
        except (ValueError, IndexError):
            return 0


def _state_of(line: bytes) -> str:
    return chr(line[line.rindex(b")") + 2])


class _OpenFiles:
    """One file of each thread, kept open between looks as far as descriptors go: reading an open
    one costs less than half of opening it anew."""

    def __init__(self, pid: int, name: str) -> None:
        """``name``: of the file in a thread's directory of /proc."""
        self._pid = pid
        self._name = name
        self._fds: dict[int, int] = {}
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        # There are two sorts of them, and others need descriptors too.
        self._most = soft * 3 // 8 if soft != resource.RLIM_INFINITY else _MOST_KEPT

    def read(self, tid: int) -> bytes:
        """Return a thread's line; raises OSError when it has ended."""
        fd = self._fds.get(tid)
        if fd is None:
            fd = os.open(f"/proc/{self._pid}/task/{tid}/{self._name}", os.O_RDONLY | os.O_CLOEXEC)
            if len(self._fds) >= min(self._most, _MOST_KEPT):
                try:
                    return os.read(fd, 1024)
                finally:
                    os.close(fd)
            self._fds[tid] = fd
        try:
            return os.pread(fd, 1024, 0)
        except OSError:
            os.close(self._fds.pop(tid))  # the id may come back with another thread
            raise

    def keep_only(self, tids: list[int]) -> None:
        """Close those of other threads."""
        if len(self._fds) <= len(tids) and self._fds.keys() <= set(tids):
            return
        for tid in self._fds.keys() - set(tids):
            os.close(self._fds.pop(tid))

    def close(self) -> None:
        """Close all."""
        self.keep_only([])
