"""How much the threads of all processes wait, by quick scans, for the list of processes.

Processes with the library are scanned first. Of the others a glance finds the threads that sleep
for a lock, and a second glance those that still do. Only then a scan may prove a deadlock, by the
rule of ``locktop check``. Locks of Python look like waits for work, until such a scan has read the
names of their functions. Apart from the first seconds of CPU time, all that takes 2 % of a CPU.
"""

from __future__ import annotations

import os
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import closing

from msgspec import Struct

from locktop.collector.errors import LocktopError
from locktop.collector.linux import procfs
from locktop.collector.linux.sleep_clock import SleepClock
from locktop.collector.model import ThreadState
from locktop.collector.sources import levels
from locktop.collector.sources.attach import attach
from locktop.collector.sources.base import Source
from locktop.collector.sources.discover import Candidate
from locktop.collector.sources.probes.python_lock_reader import PythonLockReader
from locktop.collector.sources.sampling.glance import Glance, Sleep, glance
from locktop.collector.sources.sampling.source import SamplingSource
from locktop.collector.symbols.bounded_worker import SharedWorker
from locktop.collector.symbols.python.frame_reader import new_shared_worker

#: A cycle counts as a deadlock if two scans show the cycle unchanged.
_BETWEEN_S = 0.05
#: Seconds of CPU time without pauses, so that whoever is stuck among 20 processes is soon known.
AT_ONCE_S = 2.0
#: Share of a CPU for what comes later. To draw each result takes the rest of 2 %.
BACKGROUND_SHARE = 0.015
#: Seconds. A thread that waits for longer may be stuck.
MIN_STUCK_S = 1.0


class StuckThreads(Struct, frozen=True):
    """The threads of a process that wait in contention now."""

    waiting: int
    longest_s: float  # 0.0: not known
    deadlock: str = ""  # "certain", "possible" or ""
    is_lower_bound: bool = False  # whether the longest wait may be longer

    @property
    def may_be_stuck(self) -> bool:
        """Whether a thread waits for so long that a person should see why, or is deadlocked."""
        return bool(self.deadlock) or self.longest_s >= MIN_STUCK_S

    @property
    def state(self) -> str:
        """The state in words, "" if no thread may be stuck."""
        if self.deadlock:
            return "DEADLOCK" if self.deadlock == "certain" else "possible deadlock"
        return "may be stuck" if self.may_be_stuck else ""

    @property
    def rank(self) -> tuple[bool, bool, float, int]:
        """A sort key: the process whose threads are most stuck has the least."""
        certain, possible = self.deadlock == "certain", self.deadlock == "possible"
        return not certain, not possible, -self.longest_s, -self.waiting


def rank(candidate: Candidate, stuck: StuckThreads | None) -> tuple[object, ...]:
    """Return a sort key: whoever may be stuck, those with the library, the others.

    A thread that is alone seldom waits for a lock, so processes of one thread come last.
    """
    threads = stuck or StuckThreads(0, 0.0)
    is_stuck = threads.may_be_stuck
    order = not is_stuck, candidate.threads == 1 and not is_stuck
    return *order, is_stuck or not candidate.preloaded, threads.rank


class SurveyStep(Struct, frozen=True):
    """The result of one step of the survey, and the pause that the step needs."""

    pid: int
    stuck: StuckThreads | None  # None: nothing new
    pause_s: float = 0.0  # until the next step, so that the survey takes no more than its share
    is_last: bool = True  # whether no further step of this process follows


class _Pace:
    """The pauses of a survey."""

    def __init__(self, share: float) -> None:
        """``share``: of a CPU, once the CPU time without pauses is over."""
        self._share = share
        self._left_s = AT_ONCE_S

    def pause_s(self, took_s: float) -> float:
        """Return the seconds to pause after a step that took so much CPU time."""
        self._left_s -= took_s
        return 0.0 if self._left_s > 0.0 else took_s / self._share


class _FirstGlance(Struct, frozen=True):
    """A glance at a process that needs a second one."""

    taken_at: float  # time.monotonic()
    glance: Glance


def survey_all(
    candidates: Sequence[Candidate], share: float = BACKGROUND_SHARE
) -> Iterator[SurveyStep]:
    """Yield how much the threads of each process wait. A later step of a process replaces others.

    A process of many threads is the likeliest one to be stuck, so it comes first.

    Args:
        candidates: the processes.
        share: the share of a CPU that the steps take with their pauses.
    """
    ordered = sorted(candidates, key=lambda candidate: -candidate.threads)
    pace = _Pace(share)
    for candidate in ordered:
        if candidate.preloaded:
            began_s = _cpu_s()
            stuck = survey_with_library(candidate.pid)
            yield SurveyStep(candidate.pid, stuck, pace.pause_s(_cpu_s() - began_s))
    with closing(_Glances(pace)) as glances:
        yield from glances.steps([c.pid for c in ordered if not c.preloaded])


class _Suspect(Struct, frozen=True):
    """A process that is worth a scan."""

    stuck: StuckThreads  # by its second glance
    #: The sleeps, by tid, that both glances show and that may be for locks of Python. Names of
    #: functions tell whether they are.
    python: Set[tuple[int, Sleep]]
    asleep_s: float  # between the glances
    crowd: int  # the most threads that sleep for one lock of Python
    at_locks: int  # the threads that sleep for any of these, also in a wait for a condition

    @property
    def rank(self) -> tuple[object, ...]:
        """A sort key: whoever waits surely comes first."""
        return self.stuck.rank, -self.crowd, -self.at_locks


class _Glances:
    """The survey of processes without the library."""

    def __init__(self, pace: _Pace) -> None:
        self._pace = pace
        self._first: dict[int, _FirstGlance] = {}  # by pid
        self._suspects: dict[int, _Suspect] = {}  # by pid
        self._clock = SleepClock()
        self._workers: dict[int, SharedWorker] = {}  # by user, whom a worker of root becomes

    def close(self) -> None:
        """End the readers of Python frames."""
        for worker in self._workers.values():
            worker.end()

    def steps(self, pids: Sequence[int]) -> Iterator[SurveyStep]:
        """Yield what two glances show of each process, and a scan of those that may be stuck.

        A scan costs ten glances or more, so the scans come last.
        """
        for pid in pids:
            yield self._first_glance(pid)
            yield from self._second_glances()
        while self._first:
            pid, before = next(iter(self._first.items()))
            pause_s = max(0.0, before.taken_at + MIN_STUCK_S - time.monotonic())
            yield SurveyStep(pid, None, pause_s, is_last=False)
            yield from self._second_glances()
        for pid, suspect in sorted(self._suspects.items(), key=lambda item: item[1].rank):
            yield self._scan(pid, suspect)

    def _first_glance(self, pid: int) -> SurveyStep:
        began_s, taken_at = time.thread_time(), time.monotonic()
        seen = glance(pid, self._clock)
        if seen is not None and (seen.for_locks or seen.of_all or seen.for_python):
            self._first[pid] = _FirstGlance(taken_at, seen)
        stuck = None
        if seen is not None:
            stuck = StuckThreads(
                len(seen.for_locks), seen.longest_s, is_lower_bound=bool(seen.longest_s)
            )
        pause_s = self._pace.pause_s(time.thread_time() - began_s)
        return SurveyStep(pid, stuck, pause_s, is_last=pid not in self._first)

    def _second_glances(self) -> Iterator[SurveyStep]:
        """Take the second glance at each process whose first one is old enough."""
        for pid, before in list(self._first.items()):
            if before.taken_at + MIN_STUCK_S <= time.monotonic():
                del self._first[pid]
                yield self._second_glance(pid, before)

    def _second_glance(self, pid: int, before: _FirstGlance) -> SurveyStep:
        began_s, taken_at = time.thread_time(), time.monotonic()
        now = glance(pid, self._clock)
        if now is None:
            return SurveyStep(pid, None)
        lasting = now.for_locks.items() & before.glance.for_locks.items()
        longest_s = max(now.longest_s, taken_at - before.taken_at if lasting else 0.0)
        stuck = StuckThreads(len(now.for_locks), longest_s, is_lower_bound=True)
        python = now.for_python.items() & before.glance.for_python.items()
        if lasting or python or (now.of_all and now.of_all == before.glance.of_all):
            reader = PythonLockReader(pid)
            locks = Counter(
                lock.address
                for _, sleep in python
                if (lock := reader.waited_for(sleep.address, sleep.stack_pointer)) is not None
            )
            asleep_s = taken_at - before.taken_at
            crowd = max(locks.values(), default=0)
            self._suspects[pid] = _Suspect(stuck, python, asleep_s, crowd, locks.total())
        pause_s = self._pace.pause_s(time.thread_time() - began_s)
        return SurveyStep(pid, stuck, pause_s, is_last=pid not in self._suspects)

    def _scan(self, pid: int, suspect: _Suspect) -> SurveyStep:
        began_s = self._cpu_s()  # a scan has threads of its own, and a reader of Python frames
        stuck, scanned = suspect.stuck, self._survey(pid, suspect)
        if scanned is not None and (scanned.deadlock or suspect.python):
            longest_s = max(stuck.longest_s, scanned.longest_s)
            stuck = StuckThreads(scanned.waiting, longest_s, scanned.deadlock, bool(longest_s))
        return SurveyStep(pid, stuck, self._pace.pause_s(self._cpu_s() - began_s))

    def _cpu_s(self) -> float:
        workers = [worker.pid for worker in self._workers.values() if worker.pid is not None]
        return _cpu_s() + sum(procfs.stat(pid).cpu_s for pid in workers)

    def _survey(self, pid: int, suspect: _Suspect) -> StuckThreads | None:
        """Return how much the threads of a process wait; None if it cannot be scanned."""
        try:
            user = os.stat(f"/proc/{pid}").st_uid
            worker = self._workers.setdefault(user, new_shared_worker())
            source = SamplingSource(pid, worker=worker)
        except (LocktopError, OSError):
            return None

        def asleep_s(tids: Set[int]) -> float:
            now = glance(pid)
            sleeps = now.for_python.items() & suspect.python if now is not None else ()
            return suspect.asleep_s if any(tid in tids for tid, _ in sleeps) else 0.0

        with closing(source):
            return _survey(source, bool(suspect.python), asleep_s)


def _cpu_s() -> float:
    """Return the CPU time of locktop and of its children that have ended, such as pystack."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def survey_with_library(pid: int) -> StuckThreads | None:
    """Return how much the threads of a process with the library wait, by two scans.

    Returns: None if the process is dormant, which no scan may change here, or cannot be scanned.
    """
    try:
        if levels.read_level(pid).level == "dormant":
            return None
        source = attach(pid, only_exact=True)
    except LocktopError:
        return None
    with closing(source):
        return _survey(source)


def _survey(
    source: Source,
    with_names: bool = False,
    asleep_s: Callable[[Set[int]], float] = lambda tids: 0.0,
) -> StuckThreads | None:
    """Return how much the threads of a process wait, by two scans; None if it has ended.

    Args:
        source: scans the process.
        with_names: read the names of functions too, by which waits for locks of Python are known.
        asleep_s: returns for how many seconds one of some threads has slept at least.
    """
    try:
        source.scan()
        time.sleep(_BETWEEN_S)
        snapshot = source.scan(resolve=with_names)
    except LocktopError:
        return None
    waits = {
        thread.tid: thread.waiting_for.duration_s
        for thread in snapshot.threads
        if thread.state is ThreadState.WAITING and thread.waiting_for is not None
    }
    findings = [each for each in (*snapshot.deadlocks, snapshot.hang) if each is not None]
    possible = "possible" if findings else ""
    deadlock = "certain" if any(each.certain for each in findings) else possible
    hang = snapshot.hang
    waiting, lasted_s = (len(hang.tids), hang.since_s) if hang is not None else (0, 0.0)
    # The scheduler's clock may tell less than the glances did (sleep_clock.py).
    longest_s = max([*waits.values(), asleep_s(waits.keys())]) if waits else lasted_s
    return StuckThreads(max(len(waits), waiting), longest_s, deadlock)
