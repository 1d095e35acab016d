"""Everything that belongs to one program of a sampled process: its samples, readers and probes.

``exec`` replaces the program and its threads and locks, whatever their numbers. Then the source
makes a new session.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Mapping

from locktop.collector.analysis.idle.classifier import Classifier
from locktop.collector.analysis.idle.rules import Rules
from locktop.collector.analysis.sampled_queues import QueueSamples
from locktop.collector.errors import LocktopError
from locktop.collector.linux import procfs
from locktop.collector.linux.target import Target
from locktop.collector.linux.threads import NotedSleep, SleepBegin
from locktop.collector.model import Frame, Kind, Lock
from locktop.collector.sources import preloadable
from locktop.collector.sources.probe_set import Probes
from locktop.collector.sources.probes.gil_holders import GilHolders
from locktop.collector.sources.probes.gil_reader import GilReader
from locktop.collector.sources.probes.holder_activity import HolderProbe
from locktop.collector.sources.probes.native_stacks import NativeStacks
from locktop.collector.sources.probes.probable_holders import ProbableHolders
from locktop.collector.sources.probes.python_holders import PythonHolders
from locktop.collector.sources.probes.python_lock_reader import PythonLockReader
from locktop.collector.sources.probes.python_stacks import PythonStacks, WaitKeys
from locktop.collector.sources.probes.python_thread_names import PythonThreadNames
from locktop.collector.sources.sampling.builder import SamplingBuilder
from locktop.collector.sources.sampling.child_waits import ChildWaitsProbe
from locktop.collector.sources.sampling.gil_waits import GilWaits
from locktop.collector.sources.sampling.libc_info import CLibrary
from locktop.collector.sources.sampling.met_stacks import MetStacks
from locktop.collector.sources.sampling.once_runners import OnceRunnerProbe
from locktop.collector.sources.sampling.recursive_locks import RecursiveLocks
from locktop.collector.sources.sampling.sampled_wait import SampledWait
from locktop.collector.sources.sampling.sampler import Sample, Sampler
from locktop.collector.sources.sampling.sleep_begins import SleepBegins
from locktop.collector.sources.sampling.wait_estimator import WaitEstimator
from locktop.collector.sources.sampling.wait_objects import SampledWaitReader
from locktop.collector.sources.watched_process import WatchedProcess
from locktop.collector.symbols.bounded_worker import BoundedWorker
from locktop.collector.symbols.python.frame_reader import PythonReader
from locktop.collector.symbols.python.thread_names import ThreadNameReader
from locktop.collector.symbols.resolver import Resolver

#: Seconds for threads to sleep, a pause, and the CPU time of a thread that works.
_MAX_AWAKE_S, _PAUSE_S, _MIN_WORK_S = 0.5, 0.001, 0.002
#: The identity of an executed program: the executable's device and inode, and the auxiliary vector.
#: The vector differs even for the same program, because the memory layout differs.
Program = tuple[int, int, bytes]


def _refuse_32_bits(target: Target) -> None:
    """Raise LocktopError for a program whose system calls locktop does not know."""
    if preloadable.is_of_32_bits(f"{procfs.shared_directory(target.pid)}/exe"):
        raise LocktopError(
            f"process {target} is a 32-bit program: the locks of its waits are not known"
        )


class SamplingSession:
    """One program of a sampled process."""

    def __init__(
        self,
        watched: WatchedProcess,
        rules: Rules | None,
        stop_threads: bool,
        worker: BoundedWorker | None = None,
    ) -> None:
        """See attach() for ``rules`` and ``stop_threads``, and SamplingSource for ``worker``.

        Raises:
            LocktopError: locktop does not know the program's system calls and locks.
        """
        self.watched, target = watched, watched.target
        pid = target.pid
        _refuse_32_bits(target)
        self.program = executed_program(pid)
        self.resolver = Resolver(pid)
        self.sampler = Sampler(pid, target.own_pid)
        watched.queues = QueueSamples()
        self.met_stacks = MetStacks()
        self.begins = SleepBegins(watched.tasks, self.sampler)
        self.estimator = WaitEstimator(self.begins.since)
        self.stacks = NativeStacks(pid, self.resolver, stop_threads)
        self._once = OnceRunnerProbe(pid, self.stacks)
        libc = CLibrary(pid)
        self.objects = SampledWaitReader(
            pid, libc.version, self._once.is_once_wait, libc.may_wait_at
        )
        python_locks = self._python_locks = PythonLockReader(pid)
        self._recursive_locks = RecursiveLocks(python_locks)
        self.objects.rlock_owner = self._recursive_locks.owner
        gil = GilReader(pid, python_locks)
        self.objects.gil_waits = GilWaits(gil.read)
        self.python = PythonStacks(
            PythonReader(pid, worker), self.stacks.frames, is_final=self.resolver.is_final
        )
        self.builder = SamplingBuilder(
            self.resolver, self.estimator, self.begins.since, self.stacks.frames, self._python_of
        )
        holders = HolderProbe(pid, watched.tasks, self.stacks, self.python, self._still_holds)
        holders.follow(watched.followed_locks)
        self.probes = Probes(
            self.resolver,
            self.stacks,
            self.python,
            PythonThreadNames(ThreadNameReader(pid)),
            holders,
            Classifier(rules),
            ProbableHolders(pid, watched.tasks, self.stacks),
            PythonHolders(pid, watched.tasks, python_locks),
            GilHolders(pid, watched.tasks, python_locks, gil),
            ChildWaitsProbe(pid).annotate,
        )
        self.samples: Mapping[int, Sample] = {}  # last sample, by tid
        self.waits: Mapping[int, SampledWait] = {}  # of the last sample, by tid
        self.sampled_at, self.taken = 0.0, 0  # time.monotonic(); samples since the last scan
        if watched.hurried:
            self.hurry()

    def sample(self) -> None:
        """Take one more sample of all threads.

        Raises:
            ProcessLookupError: the process has ended.
            OSError: the kernel refuses, or locktop lacks descriptors.
        """
        target = self.watched.target
        stat = procfs.stat(target.pid)
        over = stat.state in "ZX" and len(procfs.tids(target.pid)) < 2
        if over or stat.start_time != target.start_time:  # another process may have the pid by now
            raise ProcessLookupError
        sampler = self.sampler
        samples = sampler.take(stat.threads)
        waits = self.objects.read(samples, sampler.still_sleeps, sampler.newcomers)
        self.sampled_at = sampler.sampled_at
        if len(samples) < len(self.samples) or sampler.newcomers:
            lives = {sample.life for sample in samples.values()}
            self.estimator.forget_threads(lives, samples, sampler.newcomers)
        self.estimator.add(self.sampled_at, waits)
        self.taken += 1
        self.samples, self.waits = samples, waits

    def await_sleeps(self) -> None:
        """Sample a process that runs Python again until no thread is awake, or for a limited time.

        A thread that waits for the GIL wakes every 5 ms, and may be awake at a sample. Threads that
        work are left out.
        """
        if self._python_locks.locks() is None:
            return
        until, first = time.monotonic() + _MAX_AWAKE_S, self.samples
        while time.monotonic() < until and any(
            sample.call is None
            and tid not in self.waits
            and tid in first
            and sample.cpu_s - first[tid].cpu_s < _MIN_WORK_S
            for tid, sample in self.samples.items()
        ):
            time.sleep(_PAUSE_S)
            self.sample()

    def query_begins(self, budget_s: float) -> None:
        """Query the kernel since when threads wait that already waited in the first sample."""
        self.begins.query(self.waits.values(), self.samples, self.estimator.first_at, budget_s)

    def find_once_runners(self, budget_s: float) -> None:
        """Find the threads that run once routines which others wait for; then sample again."""
        controls = {
            wait.sync_object.address: wait.futex.value
            for wait in self.waits.values()
            if wait.sync_object.kind is Kind.ONCE
        }
        before = self.objects.runners
        self.objects.runners = self._once.runners(
            controls, self.samples.values(), self.sampler.still_sleeps, budget_s
        )
        if self.objects.runners != before:
            self.sample()

    def find_recursive_locks(self, budget_s: float) -> None:
        """Find the RLocks of Python that threads wait for; then sample again."""
        calls = {tid: sample.call for tid, sample in self.samples.items()}
        times = self.sampled_at, self.estimator.first_at
        if self._recursive_locks.find(self.waits.values(), calls, *times, budget_s):
            self.objects.read_again(self._recursive_locks.words)
            self.sample()

    def noted_sleep(self, tid: int) -> NotedSleep | None:
        """Return since when a thread sleeps, None if samples before the last one do not tell."""
        sample = self.samples.get(tid)
        if sample is None or sample.call is None or not self.sampler.is_counted:
            return None
        if sample.since >= self.sampled_at:
            return None
        begin = SleepBegin(sample.since, sample.since <= self.estimator.first_at)
        return NotedSleep(round(sample.cpu_s * 1e9), round(sample.runnable_s * 1e9), begin)

    def wait_keys(self) -> WaitKeys:
        """Return the numbers of the waits of the last sample."""
        return _wait_keys(self.waits.values())

    def _python_of(self, wait: SampledWait) -> tuple[Frame, ...]:
        return self.python.wait_stack(wait.tid, _wait_keys([wait]))

    def _still_holds(self, holders: Collection[tuple[int, Lock]]) -> Collection[int]:
        """Return the ids of the locks that their threads hold at this moment.

        Args:
            holders: threads, each with a lock that it held.
        """
        owners = self.objects.owners([lock.address for _, lock in holders], self.samples)
        return {lock.id for tid, lock in holders if owners.get(lock.address) == tid}

    def hurry(self) -> None:
        """Stop waiting for names. A signal handler may call this method."""
        self.resolver.hurry()
        self.python.hurry()

    def close(self) -> None:
        """Release the program."""
        self.sampler.close()
        self.resolver.close()
        self.python.close()


def executed_program(pid: int) -> Program | None:
    """Return the identity of the program that a process executes; None if it is not visible."""
    try:
        shared = procfs.shared_directory(pid)
        file, auxiliary = os.stat(f"{shared}/exe"), procfs.read(f"{shared}/auxv")
    except OSError:
        return None
    return (file.st_dev, file.st_ino, auxiliary) if auxiliary else None


def _wait_keys(waits: Iterable[SampledWait]) -> WaitKeys:
    return {wait.tid: (wait.life, wait.seq) for wait in waits}
