"""Follows the threads of one process in /proc, scan after scan."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from msgspec import Struct

from locktop.collector.linux import procfs, syscalls
from locktop.collector.linux.saved_thread_files import open_thread_files
from locktop.collector.linux.sleep_clock import SleepClock
from locktop.collector.linux.syscalls import SystemCall
from locktop.collector.linux.thread_files import TaskRecord
from locktop.collector.model import Switches
from locktop.collector.native import lib
from locktop.collector.sanitize import clean

#: A thread that stays in one wait is read again after this number of scans: its name may change.
REREAD_SCANS = 64
#: After a refusal, calls are read again only after this time: Yama logs each refusal.
_RETRY_S = 30.0
_REFUSED = SystemCall(-1, (), 0, 0)
_NO_TID = 1 << 22  # PID_MAX_LIMIT (include/linux/threads.h)
_SCHED: int = lib.LT_TASK_SCHED
_DISK: int = lib.LT_TASK_DISK
_ENDED = frozenset(b"ZX")
_SLEEPS = "SD"
#: Seconds between two reads. After more, a new sleep may have begun long before the second one.
_MAX_GAP_S = 2.0


class KernelThread(Struct, frozen=True, gc=False):
    """One living thread, as in /proc."""

    name: str
    state: str  # one letter, see proc_pid_stat(5)
    cpu_s: float
    raw_name: bytes = b""  # not sanitized
    at_s: float = 0.0  # time of the read, monotonic clock
    #: The scheduler's counts since the thread's start; all 0 if the kernel does not count.
    ran_ns: int = 0  # time on a CPU, up to the last clock tick
    queued_ns: int = 0  # time in the queue for a CPU, up to the last time that the thread got one
    runs: int = 0  # how often the thread was put on a CPU
    disk_ticks: int | None = None  # waits for disks, clock ticks; None if the kernel does not count
    #: When the first read showed the present counts, monotonic clock. While a thread sleeps its
    #: counts stay the same, so it sleeps since then.
    still_since_s: float = 0.0
    is_still_longer: bool = False  # no read just before showed other counts


class ThreadMoment(NamedTuple):
    """The state of one thread at one moment."""

    state: str  # one letter, see proc_pid_stat(5)
    #: The call in which the thread sleeps, None while it runs; _REFUSED if the kernel refuses it.
    call: SystemCall | None
    #: ran_ns, queued_ns and runs of KernelThread. They stay the same while a thread sleeps.
    counts: tuple[int, int, int]


class SleepBegin(NamedTuple):
    """Since when a thread sleeps."""

    since_s: float  # monotonic clock
    is_lower_bound: bool  # the sleep may have begun long before


class NotedSleep(NamedTuple):
    """A sleep in samples."""

    ran_ns: int
    queued_ns: int
    begin: SleepBegin


#: A wait: a number that no other thread has (its tid may come back), and the number of the wait.
Wait = tuple[int, int]
_Known = tuple[Wait | None, KernelThread]


class KernelThreads:
    """The living threads of a process, by tid in the process's own pid namespace."""

    def __init__(self, pid: int, own_pid: int, share: float = 0.75) -> None:
        """``share``: see ThreadFiles."""
        self._pid = pid
        self._same_ids = pid == own_pid
        self._own_tids: dict[int, int] = {}
        self._kernel_tids: dict[int, int] = {}
        self._last_threads: dict[int, _Known] = {}
        self._files = open_thread_files(pid, share)
        self._disk_counts, self._all_disk_counts = procfs.counts_disk_waits()
        self._round = 0
        self.locks_read_s = 0.0  # when the present scan read the locks, monotonic clock
        self._read_at_s = 0.0  # of the last read(), monotonic clock
        self._former_read_s = 0.0  # of the one before
        self._noted_sleep: Callable[[int], NotedSleep | None] = lambda tid: None
        self._refused_until = 0.0  # time.monotonic()
        self._clock = SleepClock()
        self.living: Collection[int] = ()  # at the last read(), in our own pid namespace

    def close(self) -> None:
        """Close all files."""
        self._files.close()

    def read(self, waits: Mapping[int, Wait]) -> dict[int, KernelThread]:
        """Return the living threads by tid.

        Args:
            waits: the waits of sleeping threads, by tid. A thread in the wait of the former scan
                has used no CPU time since. So the result has the same object again. Of a thread in
                another wait, only the counts are read.
        """
        self._round += 1
        self._former_read_s, self._read_at_s = self._read_at_s, time.monotonic()
        known_threads: dict[int, _Known] = {}
        # In another namespace, ids are looked up in the list.
        of_number = self._files.tids_by_number() if self._same_ids else (self._files.tids(), True)
        kernel_tids, is_new = of_number
        self._files.keep_only(kernel_tids)
        if not self._read_into(known_threads, kernel_tids, waits) and not is_new:
            kernel_tids = self._files.tids()
            self._read_into(
                known_threads, [tid for tid in kernel_tids if tid not in known_threads], waits
            )
        self.living, self._last_threads = kernel_tids, known_threads
        return {tid: task for tid, (_, task) in known_threads.items()}

    def _read_into(
        self,
        known_threads: dict[int, _Known],
        kernel_tids: Sequence[int],
        waits: Mapping[int, Wait],
    ) -> bool:
        """Add the living ones of some threads to ``known_threads``; return whether all live."""
        wanted: list[int] = []
        moved: list[tuple[int, int]] = []
        former, number, disk_counts = self._last_threads, self._round, self._disk_counts
        for kernel_tid, tid in self._both_tids(kernel_tids):
            wait, before = waits.get(tid), former.get(tid)
            if before is None or wait is None or (number + tid) % REREAD_SCANS == 0:
                wanted.append(kernel_tid)
                continue
            was, task = before
            if was == wait:
                known_threads[tid] = before
            # In another wait, the schedstat alone may show the new state of the thread.
            elif was is not None and was[0] == wait[0] and task.runs > 0 and not disk_counts:
                moved.append((kernel_tid, tid))
            else:
                wanted.append(kernel_tid)
        wanted += self._read_moved(moved, waits, known_threads)
        raws = self._raw(wanted)
        for kernel_tid, raw in zip(wanted, raws, strict=True):
            if raw is None:
                self._own_tids.pop(kernel_tid, None)  # another thread may get the id
            elif raw.state not in _ENDED:
                tid = kernel_tid if self._same_ids else self._own_tids[kernel_tid]
                before = former.get(tid)
                known_threads[tid] = waits.get(tid), self._task(raw, before[1] if before else None)
        return None not in raws

    def _read_moved(
        self,
        moved: Sequence[tuple[int, int]],
        waits: Mapping[int, Wait],
        known_threads: dict[int, _Known],
    ) -> list[int]:
        """Add threads that went from one wait to another to ``known_threads``.

        The stat of such a thread says nothing new, and takes four times as long as its schedstat.

        Args:
            moved: pairs of ids as of _both_tids().
            waits: see read().
            known_threads: the result.

        Returns:
            the threads that did not run since the former scan, or that ended, by their ids in our
            pid namespace.
        """
        if not moved:
            return []
        scheds = self._files.read_scheds([kernel_tid for kernel_tid, _ in moved])
        rest, former = [], self._last_threads
        for (kernel_tid, tid), (at_ns, ran_ns, queued_ns, runs) in zip(moved, scheds, strict=True):
            before = former[tid][1]
            if runs <= before.runs:
                rest.append(kernel_tid)
                continue
            known_threads[tid] = (
                waits[tid],
                KernelThread(
                    name=before.name,
                    state="S",
                    cpu_s=ran_ns / 1e9,
                    raw_name=before.raw_name,
                    at_s=at_ns / 1e9,
                    ran_ns=ran_ns,
                    queued_ns=queued_ns,
                    runs=runs,
                    still_since_s=at_ns / 1e9,
                    is_still_longer=self._is_after_gap(at_ns / 1e9),
                ),
            )
        return rest

    def keep_only(self, kernel_tids: Collection[int]) -> None:
        """Close the files of all other threads; for callers that do not call read()."""
        self._files.keep_only(kernel_tids)

    def _both_tids(self, kernel_tids: Sequence[int]) -> Iterable[tuple[int, int]]:
        """Return pairs: the id in our pid namespace, the id in the process's own namespace."""
        if self._same_ids:
            return zip(kernel_tids, kernel_tids, strict=True)
        former, self._own_tids = self._own_tids, {}
        for kernel_tid in kernel_tids:
            with suppress(OSError, ValueError, IndexError):  # the thread ended meanwhile
                own = former.get(kernel_tid) or procfs.own_tid(self._pid, kernel_tid)
                self._own_tids[kernel_tid] = own
        self._kernel_tids = {own: kernel for kernel, own in self._own_tids.items()}
        return self._own_tids.items()

    def _raw(self, kernel_tids: Sequence[int], calls: bool = False) -> list[TaskRecord | None]:
        """Read the threads' files; None for an ended thread.

        A missing thread is read twice. The first read closes its files; the second read finds
        another thread that has got the same id.
        """
        records = self._files.read(kernel_tids, calls)
        gone = [tid for tid, raw in zip(kernel_tids, records, strict=True) if raw is None]
        if not gone:
            return records
        second = iter(self._files.read(gone, calls))
        return [next(second) if raw is None else raw for raw in records]

    def _task(self, raw: TaskRecord, before: KernelThread | None) -> KernelThread:
        raw_name = raw.name[: raw.name_size]
        if before is not None and before.raw_name == raw_name:
            name, raw_name = before.name, before.raw_name  # one object for all scans
        else:
            name = clean(raw_name)
        counted, at_s = raw.facts & _SCHED, raw.at_ns / 1e9
        still_since_s, is_still_longer = at_s, before is None or self._is_after_gap(at_s)
        if before is not None and counted and _has_counts(before, raw):
            still_since_s, is_still_longer = before.still_since_s, before.is_still_longer
        return KernelThread(
            name=name,
            state=chr(raw.state),
            # The same clock, but not cut to ticks.
            cpu_s=raw.ran_ns / 1e9 if counted and raw.runs else raw.cpu_ticks * procfs.CLOCK_TICK_S,
            raw_name=raw_name,
            at_s=at_s,
            ran_ns=raw.ran_ns if counted else 0,
            queued_ns=raw.queued_ns if counted else 0,
            runs=raw.runs if counted else 0,
            disk_ticks=self._disk_ticks(raw) if self._disk_counts else None,
            still_since_s=still_since_s,
            is_still_longer=is_still_longer,
        )

    def _is_after_gap(self, at_s: float) -> bool:
        return at_s - self._former_read_s > _MAX_GAP_S

    def note_sleeps(self, noted_sleep: Callable[[int], NotedSleep | None]) -> None:
        """Take the sleeps of threads from samples; for callers that do not call read().

        Args:
            noted_sleep: returns the sleep of a thread by tid, None if it does not sleep.
        """
        self._noted_sleep = noted_sleep

    def sleep_begin(
        self, tid: int, counts: tuple[int, int, int] | None = None
    ) -> SleepBegin | None:
        """Return since when a thread sleeps, as far as reads before the last one show that.

        A thread that slept before and after a scan read its locks has them at both times.

        Args:
            tid: a thread of the last read(), or of the samples.
            counts: its present counts. None: those of the last read(), or of the samples.

        Returns:
            None if the thread ran since, or if the kernel does not count.
        """
        noted = self._noted_sleep(tid)
        if noted is not None:
            is_same = counts is None or counts[:2] == (noted.ran_ns, noted.queued_ns)
            return noted.begin if is_same else None
        _, task = self._last_threads.get(tid, (None, None))
        if task is None or not task.runs or task.state not in _SLEEPS:
            return None
        if task.still_since_s >= self._read_at_s:
            return None
        if counts is not None and counts != (task.ran_ns, task.queued_ns, task.runs):
            return None
        return SleepBegin(task.still_since_s, task.is_still_longer)

    def _disk_ticks(self, raw: TaskRecord) -> int | None:
        if not raw.facts & _DISK:
            return None
        return raw.disk_ticks if raw.disk_ticks or self._all_disk_counts else None

    def are_asleep(self, tids: Iterable[int]) -> bool:
        """Tell whether none of these threads runs or is ready to run at this moment."""
        raws = self._raw([self.kernel_tid(tid) for tid in tids])
        return all(raw is not None and chr(raw.state) != "R" for raw in raws)

    def asleep(self, tids: Iterable[int]) -> dict[int, int]:
        """Return, for the threads that sleep now, how often each was put on a CPU before.

        The result is empty if the kernel does not count.
        """
        wanted = list(tids)
        raws = self._raw([self.kernel_tid(tid) for tid in wanted])
        return {
            tid: raw.runs
            for tid, raw in zip(wanted, raws, strict=True)
            if raw is not None and chr(raw.state) == "S" and raw.facts & _SCHED and raw.runs
        }

    def states(self, tids: Iterable[int]) -> dict[int, str]:
        """Return the letters of the threads' present states, "" for an ended thread."""
        return {tid: self._state(tid) for tid in tids}

    def _state(self, tid: int) -> str:
        (raw,) = self._raw([self.kernel_tid(tid)])
        state = chr(raw.state) if raw is not None else ""
        return "" if state in "ZX" else state

    def is_process_ending(self) -> bool:
        """Tell whether the process exits or was killed: its threads end one after the other."""
        lives = False
        with suppress(OSError):  # the process has ended
            for kernel_tid in procfs.tids(self._pid):
                with suppress(OSError):  # the thread has ended
                    end = procfs.thread_end(self._pid, kernel_tid)
                    if end.is_killed:
                        return True
                    lives = lives or not end.exits
        return not lives

    def moments(self, tids: Iterable[int]) -> dict[int, ThreadMoment]:
        """Return the present state and call of each thread; ended threads are left out.

        A thread sleeps in that call only if still_sleeps() is true afterwards.
        """
        wanted = {tid: self.kernel_tid(tid) for tid in tids}
        moments = {}
        for tid, raw in zip(wanted, self._read_with_calls(list(wanted.values())), strict=True):
            if raw is not None and (state := chr(raw.state)) not in "ZX":
                call = _call(raw.call[: raw.call_size]) if raw.call_size else _REFUSED
                moments[tid] = ThreadMoment(state, call, (raw.ran_ns, raw.queued_ns, raw.runs))
        return moments

    def _read_with_calls(self, kernel_tids: Sequence[int]) -> list[TaskRecord | None]:
        """Read the threads' files, with calls unless the kernel refuses them."""
        if time.monotonic() >= self._refused_until:
            try:
                return self._raw(kernel_tids, calls=True)
            except PermissionError:
                self._refused_until = time.monotonic() + _RETRY_S
        return self._raw(kernel_tids)

    def still_sleeps(self, tid: int) -> bool:
        """Tell whether a thread slept at the last moments(), and has not run since.

        The result is False if the kernel does not count.
        """
        return self._files.still_sleeps(self.kernel_tid(tid))

    def asleep_since(self, tid: int) -> float | None:
        """Return a moment since which a thread has slept (time.monotonic()); None: not known.

        The caller checks afterwards that the thread has not run meanwhile.
        """
        return self._clock.asleep_since(self._pid, self.kernel_tid(tid))

    def sleeps_in(self, tid: int) -> str:
        """Return the kernel's function in which a thread sleeps, such as "futex_do_wait".

        The result is "" or "0" if the kernel does not say. Ids are those of the last read().
        """
        try:
            kernel_tid = self._kernel_tids.get(tid) or self.kernel_tid(tid)
            return procfs.thread_wchan(self._pid, kernel_tid)
        except OSError:
            return ""

    def call(self, tid: int) -> SystemCall | None:
        """Return the system call in which a thread sleeps; None while it runs.

        Raises: OSError if the thread has ended; PermissionError if the kernel refuses the call.
        """
        if time.monotonic() < self._refused_until:
            raise PermissionError
        try:
            return _call(procfs.thread_syscall(self._pid, self.kernel_tid(tid)))
        except PermissionError:
            self._refused_until = time.monotonic() + _RETRY_S
            raise

    def kernel_tid(self, tid: int) -> int:
        """Return the id of a thread in our own pid namespace.

        For an ended thread, return an id that no thread has.
        """
        if self._same_ids:
            return tid
        own = self._kernel_tids.get(tid, _NO_TID)
        if own == _NO_TID or self._probe_own_tid(own) != tid:
            self._own_tids.clear()
            self._kernel_tids.clear()
            with suppress(OSError):  # the process has ended
                self._both_tids(procfs.tids(self._pid))
        return self._kernel_tids.get(tid, _NO_TID)

    def _probe_own_tid(self, kernel_tid: int) -> int:
        try:
            return procfs.own_tid(self._pid, kernel_tid)
        except (OSError, ValueError, IndexError):
            return _NO_TID

    def switches(self, tid: int) -> Switches | None:
        """Return a thread's switches and migrations; None if the kernel does not count.

        Raises: OSError if the thread has ended.
        """
        kernel_tid = self.kernel_tid(tid)
        try:
            voluntary, involuntary = procfs.thread_switches(self._pid, kernel_tid)
        except (ValueError, KeyError):
            return None
        try:
            return Switches(
                voluntary=voluntary,
                involuntary=involuntary,
                migrations=procfs.thread_migrations(self._pid, kernel_tid),
            )
        except (OSError, ValueError, KeyError):
            return Switches(voluntary=voluntary, involuntary=involuntary, migrations=None)

    def start_time(self, tid: int) -> int:
        """Return a thread's start, clock ticks since boot. Raises OSError for an ended thread."""
        return procfs.thread_stat(self._pid, self.kernel_tid(tid)).start_time

    def runs(self, tid: int) -> int:
        """Return how often a thread was put on a CPU, 0 if the kernel does not count.

        Raises: OSError if the thread has ended.
        """
        (raw,) = self._raw([self.kernel_tid(tid)])
        if raw is None:
            raise ProcessLookupError
        return raw.runs if raw.facts & _SCHED else 0


def _has_counts(task: KernelThread, raw: TaskRecord) -> bool:
    counts = task.runs, task.ran_ns, task.queued_ns
    return task.runs > 0 and counts == (raw.runs, raw.ran_ns, raw.queued_ns)


def _call(data: bytes) -> SystemCall | None:
    try:
        return syscalls.parse(data)
    except ValueError:
        return None
