"""Samples of all threads of a process through /proc: nothing stops, nothing changes.

schedstat counts how often the kernel put a thread on a CPU. If the count is unchanged, the thread
is unchanged, and one short read shows that. So a sample of a sleeping process is cheap.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from locktop.collector.linux import procfs, syscalls
from locktop.collector.linux.saved_thread_files import open_thread_files
from locktop.collector.linux.syscalls import SystemCall
from locktop.collector.linux.thread_files import TaskRecord
from locktop.collector.native import lib
from locktop.collector.sanitize import clean

_SCHED: int = lib.LT_TASK_SCHED
_ASLEEP: int = lib.LT_TASK_ASLEEP
_SLEPT: int = lib.LT_TASK_SLEPT

_MAX_FILES = 0.6  # share of locktop's descriptors; queries beside samples need the others

_clean = functools.lru_cache(maxsize=4096)(clean)
#: The first sample after the end of a thread misses a new thread with the same id. So a thread is
#: new if it began after the third last sample, or shortly before. The kernel counts in clock ticks.
_SAMPLES_KEPT, _SLACK_S = 4, 0.05


class Sample(Struct, frozen=True, gc=False):
    """The state of one thread in one sample.

    While a thread sleeps under the same name, its sample stays the same object.
    """

    tid: int  # in the process's pid namespace
    kernel_tid: int  # in locktop's pid namespace
    life: int  # number of the thread, because ids are reused
    name: str
    state: str  # letter, see proc_pid_stat(5)
    cpu_s: float
    runnable_s: float  # total time without a CPU though ready
    call: SystemCall | None  # the call in which it sleeps; None while it runs
    seq: int  # number of the sleep: unchanged exactly as long as the thread sleeps
    since: float  # begin of the first sample that saw this sleep, time.monotonic()
    runs: int = 0  # how often the kernel put the thread on a CPU


class Sampler:
    """The samples of the threads of one process."""

    def __init__(self, pid: int, own_pid: int) -> None:
        """``own_pid``: the process's pid in its own pid namespace."""
        self._pid = pid
        self._same_ids = pid == own_pid
        self._latest: dict[int, Sample] = {}  # by tid in locktop's pid namespace
        self._files = open_thread_files(pid, _MAX_FILES)
        self.is_counted = False  # whether the kernel counts the runs of threads
        self._number = self._seq = self._life = 0
        self.sampled_at = 0.0  # begin of the last sample: time.monotonic()
        self._taken_at: deque[float] = deque(maxlen=_SAMPLES_KEPT)
        self.newcomers: set[int] = set()  # ids of threads that began just before the last sample

    def close(self) -> None:
        """Close the open files."""
        self._files.close()

    def take(self, count: int = 0) -> Mapping[int, Sample]:
        """Take a sample of the living threads, by tid.

        Args:
            count: the number of threads, if it was just read; else 0. If the number is unchanged,
                the threads are taken to be the same. If one of them turns out to have ended, the
                next sample has the new threads.

        Raises:
            PermissionError: locktop may not read the process.
            OSError: the process is gone.
        """
        self._number += 1
        self.newcomers = set()
        self.sampled_at = self._files.now_s()
        self._taken_at.append(self.sampled_at)
        before, self._latest = self._latest, {}  # after a failure the next sample is a first one
        kernel_tids = list(before) if count and count == len(before) else self._files.tids()
        read = self._files.sample(kernel_tids, self._number)
        living = set(kernel_tids)
        samples_by_tid = {tid: sample for tid, sample in before.items() if tid in living}
        for kernel_tid, raw in read:
            earlier = samples_by_tid.pop(kernel_tid, None)
            sample = self._sample(kernel_tid, raw, earlier) if raw is not None else None
            if sample is not None:
                samples_by_tid[kernel_tid] = sample
        self._latest = samples_by_tid
        return (
            samples_by_tid
            if self._same_ids
            else {sample.tid: sample for sample in samples_by_tid.values()}
        )

    def still_sleeps(self, sample: Sample) -> bool:
        """Return whether the thread was on no CPU since its sample."""
        newest = self._latest.get(sample.kernel_tid)
        return newest is sample and self._files.still_sleeps(sample.kernel_tid)

    def asleep(self, samples: Iterable[Sample]) -> set[int]:
        """Return the threads for which still_sleeps() holds, by tid in locktop's pid namespace."""
        newest = self._latest
        wanted = [
            sample.kernel_tid for sample in samples if newest.get(sample.kernel_tid) is sample
        ]
        return self._files.asleep(wanted)

    def _sample(self, kernel_tid: int, raw: TaskRecord, before: Sample | None) -> Sample | None:
        """Return None for a thread that ended, or that cannot be read."""
        self.is_counted = self.is_counted or bool(raw.runs)
        state, name = chr(raw.state), _clean(raw.name[: raw.name_size])
        if state in "ZX":
            return None
        if before is not None and raw.facts & _SLEPT and raw.facts & _ASLEEP:
            same = (state, name) == (before.state, before.name)
            return before if same else replace(before, state=state, name=name)
        if before is not None and raw.ran_ns / 1e9 < before.cpu_s:
            before = None  # another thread with this id: its files could not be kept open
        try:
            call = syscalls.parse(raw.call[: raw.call_size])
            tid, life = (
                (before.tid, before.life) if before is not None else self._new_life(kernel_tid)
            )
        except (OSError, ValueError, IndexError):
            return None  # the thread ended meanwhile
        if call is not None and not raw.facts & _ASLEEP:
            call = None  # it ran meanwhile, unless the kernel does not count runs
            state = "R" if raw.facts & _SCHED and raw.runs else state
        if before is not None and before.call is None and call is None:
            seq, since = before.seq, before.since
        else:
            self._seq += 1
            seq, since = self._seq, self.sampled_at
        return Sample(
            tid=tid,
            kernel_tid=kernel_tid,
            life=life,
            name=name,
            state=state,
            cpu_s=raw.ran_ns / 1e9,
            runnable_s=raw.queued_ns / 1e9,
            call=call,
            seq=seq,
            since=since,
            runs=raw.runs,
        )

    def _new_life(self, kernel_tid: int) -> tuple[int, int]:
        """Return the tid in the process's pid namespace, and a new life.

        A thread that could not be read for a time gets a new life too.
        """
        tid = kernel_tid if self._same_ids else procfs.own_tid(self._pid, kernel_tid)
        age_s = procfs.age_s(procfs.thread_stat(self._pid, kernel_tid).start_time)
        if age_s < self.sampled_at - self._taken_at[0] + _SLACK_S:
            self.newcomers.add(tid)
        self._life += 1
        return tid, self._life
