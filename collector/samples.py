"""Samples of what all threads of a process do, from outside: nothing stops, nothing is changed.

Of a thread that has not been put on a CPU since the sample before (schedstat counts that) all is as
it was: one short read tells. So a sample of a process whose threads mostly sleep is cheap.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace

from locktop.collector import procfs, syscalls
from locktop.collector.sample_files import SampleFiles
from locktop.collector.sanitize import clean
from locktop.collector.syscalls import Call

#: A thread that does not run is asked for its name again every so many samples.
_ROUNDS = 64
_THIRD = 3  # three files are kept open for each thread
#: The first sample after the end of a thread does not show the one that has its id by then: who
#: began after the third last sample, or shortly before, is new. The kernel tells clock ticks.
_SHORT_SIGHT, _SLACK_S = 4, 0.05
_UNCOUNTED = b"0 0 0\n"  # of a kernel that does not count: whether a thread ran nobody knows


@dataclass(frozen=True, slots=True)
class Sample:
    """What one thread did when it was looked at."""

    tid: int  # as the process counts
    kernel_tid: int  # as we do
    life: int  # of the thread: ids are used again
    name: str
    state: str  # letter, see proc_pid_stat(5)
    cpu_s: float
    runnable_s: float  # waited for a CPU, in all
    call: Call | None  # in which it sleeps, None while it runs
    seq: int  # stays the same while it sleeps on, and only then
    since: float  # when the first sample that saw it so was begun


class Samples:
    """The threads of one process, sample after sample."""

    def __init__(self, pid: int, own_pid: int) -> None:
        """``own_pid``: its pid as its own pid namespace counts."""
        self._pid = pid
        self._same_ids = pid == own_pid
        self._known: dict[int, tuple[bytes, Sample]] = {}  # by the kernel's tid: schedstat
        self._schedstats = SampleFiles(pid, "schedstat", _THIRD)
        self._calls = SampleFiles(pid, "syscall", _THIRD)
        self._stats = SampleFiles(pid, "stat", _THIRD)
        self._round = self._seq = self._life = 0
        self.at = 0.0  # when the last sample was begun: time.monotonic()
        self._taken_at: deque[float] = deque(maxlen=_SHORT_SIGHT)
        self.newcomers: set[int] = set()  # tids of threads that began just before the last sample

    def close(self) -> None:
        """Close what is kept open."""
        for files in (self._schedstats, self._calls, self._stats):
            files.close()

    def take(self) -> Mapping[int, Sample]:
        """Return the living threads by tid. Raises OSError when the process is gone,
        PermissionError where it may not be looked into."""
        self._round += 1
        self.newcomers = set()
        self.at = time.monotonic()
        self._taken_at.append(self.at)
        kernel_tids = procfs.tids(self._pid)
        if len(kernel_tids) < len(self._known):
            self._forget(set(kernel_tids))
        found: dict[int, Sample] = {}
        known: dict[int, tuple[bytes, Sample]] = {}
        for kernel_tid in kernel_tids:
            taken = self._sample(kernel_tid)
            if taken is not None:
                known[kernel_tid] = taken
                found[taken[1].tid] = taken[1]
        self._known = known
        return found

    def still_sleeps(self, sample: Sample) -> bool:
        """Tell whether the thread was on no CPU since its sample was taken."""
        known = self._known.get(sample.kernel_tid)
        try:
            schedstat = self._schedstats.read(sample.kernel_tid)
            return known is not None and known[0] == schedstat != _UNCOUNTED
        except OSError:
            return False

    def _forget(self, living: set[int]) -> None:
        for files in (self._schedstats, self._calls, self._stats):
            files.keep_only(living)

    def _sample(self, kernel_tid: int) -> tuple[bytes, Sample] | None:
        before = self._known.get(kernel_tid)
        try:
            schedstat = self._schedstats.read(kernel_tid)
            if before and before[0] == schedstat != _UNCOUNTED and before[1].call is not None:
                due = (self._round + kernel_tid) % _ROUNDS == 0
                return (schedstat, self._renamed(kernel_tid, before[1])) if due else before
            return schedstat, self._new(kernel_tid, schedstat, before[1] if before else None)
        except PermissionError:
            raise
        except (OSError, ValueError, IndexError):
            return None  # it ended in between

    def _new(self, kernel_tid: int, schedstat: bytes, before: Sample | None) -> Sample:
        state, name = self._state(kernel_tid)
        if state in "ZX":
            raise ProcessLookupError
        call = syscalls.parse(self._calls.read(kernel_tid))
        # What was read together must belong together: it slept all the while, or it runs.
        if call is not None and self._schedstats.read(kernel_tid) != schedstat:
            call, state = None, "R"
        run_ns, runnable_ns = schedstat.split()[:2]
        cpu_s = int(run_ns) / 1e9
        if before is not None and cpu_s < before.cpu_s:
            before = None  # another one, where its files could not be kept open
        if before is not None and before.call is None and call is None:
            seq, since = before.seq, before.since
        else:
            self._seq += 1
            seq, since = self._seq, self.at
        tid, life = (before.tid, before.life) if before is not None else self._begun(kernel_tid)
        return Sample(
            tid=tid,
            kernel_tid=kernel_tid,
            life=life,
            name=name,
            state=state,
            cpu_s=cpu_s,
            runnable_s=int(runnable_ns) / 1e9,
            call=call,
            seq=seq,
            since=since,
        )

    def _renamed(self, kernel_tid: int, sample: Sample) -> Sample:
        state, name = self._state(kernel_tid)
        same = (state, name) == (sample.state, sample.name)
        return sample if same else replace(sample, state=state, name=name)

    def _state(self, kernel_tid: int) -> tuple[str, str]:
        line = self._stats.read(kernel_tid)
        end = line.rindex(b")")
        return chr(line[end + 2]), clean(line[line.index(b"(") + 1 : end])

    def _begun(self, kernel_tid: int) -> tuple[int, int]:
        """The tid as the process counts, and a new life; also of a thread that could not be read
        for a time."""
        tid = kernel_tid if self._same_ids else procfs.own_tid(self._pid, kernel_tid)
        age_s = procfs.age_s(procfs.parse_stat(self._stats.read(kernel_tid)).start_time)
        if age_s < self.at - self._taken_at[0] + _SLACK_S:
            self.newcomers.add(tid)
        self._life += 1
        return tid, self._life
