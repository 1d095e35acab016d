"""Samples of what all threads of a process do, from outside: nothing stops, nothing is changed.

Of a thread that has not been put on a CPU since the sample before (schedstat counts that) all is as
it was: one short read tells. So a sample of a process whose threads mostly sleep is cheap.
"""

from __future__ import annotations

import functools
import time
from collections import deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from locktop.collector.linux import procfs, syscalls
from locktop.collector.linux.syscalls import SystemCall
from locktop.collector.linux.thread_files import TaskRecord, ThreadFiles
from locktop.collector.native import lib
from locktop.collector.sanitize import clean

_SCHED: int = lib.LT_TASK_SCHED
_ASLEEP: int = lib.LT_TASK_ASLEEP
_SLEPT: int = lib.LT_TASK_SLEPT

_MAX_FILES = 0.6  # of the descriptors that we may have: others are needed for what is asked beside

_clean = functools.lru_cache(maxsize=4096)(clean)
#: The first sample after the end of a thread does not show the one that has its id by then: who
#: began after the third last sample, or shortly before, is new. The kernel tells clock ticks.
_SHORT_SIGHT, _SLACK_S = 4, 0.05


class Sample(NamedTuple):  # one for each thread that moves, in each sample
    """What one thread did when it was looked at. While it sleeps on under the same name it is the
    same object."""

    tid: int  # as the process counts
    kernel_tid: int  # as we do
    life: int  # of the thread: ids are used again
    name: str
    state: str  # letter, see proc_pid_stat(5)
    cpu_s: float
    runnable_s: float  # waited for a CPU, in all
    call: SystemCall | None  # in which it sleeps, None while it runs
    seq: int  # stays the same while it sleeps on, and only then
    since: float  # when the first sample that saw it so was begun


class Sampler:
    """The threads of one process, sample after sample."""

    def __init__(self, pid: int, own_pid: int) -> None:
        """``own_pid``: its pid as its own pid namespace counts."""
        self._pid = pid
        self._same_ids = pid == own_pid
        self._known: dict[int, Sample] = {}  # by the kernel's tid
        self._files = ThreadFiles(pid, _MAX_FILES)
        self.is_counted = False  # whether the kernel counts how often threads run
        self._number = self._seq = self._life = 0
        self.at = 0.0  # when the last sample was begun: time.monotonic()
        self._taken_at: deque[float] = deque(maxlen=_SHORT_SIGHT)
        self.newcomers: set[int] = set()  # tids of threads that began just before the last sample

    def close(self) -> None:
        """Close what is kept open."""
        self._files.close()

    def take(self, count: int = 0) -> Mapping[int, Sample]:
        """Return the living threads by tid. ``count``: how many there are, if that was just read:
        as many as in the sample before are the same ones, unless it turns out now that one of them
        has ended; then the next sample has those that came. Raises OSError when the process is
        gone, PermissionError where it may not be looked into."""
        self._number += 1
        self.newcomers = set()
        self.at = time.monotonic()
        self._taken_at.append(self.at)
        before, self._known = self._known, {}  # where one fails the next one is a first one
        kernel_tids = list(before) if count and count == len(before) else self._files.tids()
        read = self._files.sample(kernel_tids, self._number)
        living = set(kernel_tids)
        known = {tid: sample for tid, sample in before.items() if tid in living}
        for kernel_tid, raw in read:
            earlier = known.pop(kernel_tid, None)
            sample = self._sample(kernel_tid, raw, earlier) if raw is not None else None
            if sample is not None:
                known[kernel_tid] = sample
        self._known = known
        return known if self._same_ids else {sample.tid: sample for sample in known.values()}

    def still_sleeps(self, sample: Sample) -> bool:
        """Tell whether the thread was on no CPU since its sample was taken."""
        known = self._known.get(sample.kernel_tid)
        return known is sample and self._files.still_sleeps(sample.kernel_tid)

    def asleep(self, samples: Iterable[Sample]) -> set[int]:
        """Return the kernel's tids of those of which still_sleeps() is true."""
        known = self._known
        wanted = [one.kernel_tid for one in samples if known.get(one.kernel_tid) is one]
        return self._files.asleep(wanted)

    def _sample(self, kernel_tid: int, raw: TaskRecord, before: Sample | None) -> Sample | None:
        """None of a thread that ended, or of which nothing can be told."""
        self.is_counted = self.is_counted or bool(raw.runs)
        state, name = chr(raw.state), _clean(raw.name[: raw.name_size])
        if state in "ZX":
            return None
        if before is not None and raw.known & _SLEPT and raw.known & _ASLEEP:
            same = (state, name) == (before.state, before.name)
            return before if same else before._replace(state=state, name=name)
        if before is not None and raw.ran_ns / 1e9 < before.cpu_s:
            before = None  # another one, where its files could not be kept open
        try:
            call = syscalls.parse(raw.call[: raw.call_size])
            tid, life = (before.tid, before.life) if before is not None else self._begun(kernel_tid)
        except (OSError, ValueError, IndexError):
            return None  # it ended in between
        if call is not None and not raw.known & _ASLEEP:
            call = None  # it was on a CPU meanwhile, unless the kernel does not count that
            state = "R" if raw.known & _SCHED and raw.runs else state
        if before is not None and before.call is None and call is None:
            seq, since = before.seq, before.since
        else:
            self._seq += 1
            seq, since = self._seq, self.at
        return Sample(
            tid, kernel_tid, life, name, state, raw.ran_ns / 1e9, raw.queued_ns / 1e9, call, seq,
            since,
        )  # fmt: skip

    def _begun(self, kernel_tid: int) -> tuple[int, int]:
        """The tid as the process counts, and a new life; also of a thread that could not be read
        for a time."""
        tid = kernel_tid if self._same_ids else procfs.own_tid(self._pid, kernel_tid)
        age_s = procfs.age_s(procfs.thread_stat(self._pid, kernel_tid).start_time)
        if age_s < self.at - self._taken_at[0] + _SLACK_S:
            self.newcomers.add(tid)
        self._life += 1
        return tid, self._life
