"""The sampled source: a process that nobody prepared, looked at through /proc and its memory.

Nothing in it stops and nothing is changed. A thread of ours takes samples, as often as a share of a
CPU allows; a look takes one more and makes a picture of all.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from locktop.collector.analysis import deadlocks, wait_for_graph
from locktop.collector.analysis.idle.classifier import Classifier
from locktop.collector.analysis.idle.rules import Rules
from locktop.collector.errors import LocktopError
from locktop.collector.linux import procfs, ptrace_access, thread_files
from locktop.collector.linux.process_info import ProcessFigures, iso
from locktop.collector.linux.syscalls import Call
from locktop.collector.linux.target import find_process
from locktop.collector.linux.threads import Tasks
from locktop.collector.model import (
    CONTENTION_KINDS,
    Deadlock,
    Frame,
    Kind,
    Lock,
    Snapshot,
    Thread,
    ThreadState,
)
from locktop.collector.sanitize import clean
from locktop.collector.sources import discover, gc_pause, preloadable
from locktop.collector.sources.base import WaitNow
from locktop.collector.sources.probes.followed_thread import FollowedThread
from locktop.collector.sources.probes.holder_activity import Holders
from locktop.collector.sources.probes.native_stacks import NativeStacks
from locktop.collector.sources.probes.python_stacks import PythonStacks, Waits
from locktop.collector.sources.sampling import builder
from locktop.collector.sources.sampling.builder import SamplingBuilder
from locktop.collector.sources.sampling.cpu_budget import CpuBudget
from locktop.collector.sources.sampling.libc_info import CLibrary
from locktop.collector.sources.sampling.once_runners import OnceWaits
from locktop.collector.sources.sampling.sampler import Sample, Sampler
from locktop.collector.sources.sampling.wait_estimator import WaitEstimator
from locktop.collector.sources.sampling.wait_objects import ObjectWait, ObjectWaits
from locktop.collector.symbols.python.frame_reader import PythonReader
from locktop.collector.symbols.resolver import Resolver

#: Between the two samples of a first look: one alone tells no time.
_FIRST_S = 0.05
_NAMES_S = 30.0
#: After a first look that is to tell all, where others tell more.
_MAX_MORE = 3
#: What these need is read at once, before it is known that there is time for all.
_STACKS_AT_ONCE = 32
_NOTE = (
    "there is a sample every {every:.0f} ms: shorter waits are met by chance; how often locks were"
    " taken, and how long they were held, is not known"
)
_UNCOUNTED = (
    "this kernel does not tell when its threads sleep (CONFIG_SCHED_INFO);"
    f" {ptrace_access.HOW_TO_PRELOAD}"
)
#: Of the descriptors, for the threads that holders are: samples keep others of all.
_FEW_FILES = 0.125
_UNTOLD = "some threads wait in futex calls of which it cannot be told for what, or who holds it"


class _Stacks(NamedTuple):
    """Seconds for call stacks that are new in a look; others come in later ones."""

    of_waits: float
    of_new_waits: float  # that no sample before has met: most are over before the next one
    of_holders: float


_IN_A_SCAN, _OF_ALL = _Stacks(0.005, 0.002, 0.002), _Stacks(2.0, 2.0, 2.0)


class ProcSource:
    """Samples one process."""

    def __init__(
        self, pid: int, rules: Rules | None = None, why: str = "", stop_threads: bool = False
    ) -> None:
        """``rules``, ``stop_threads``: see attach(); ``why``: what to say of the library that is
        not there.

        Raises LocktopError where the process may not be looked into."""
        self._why = why
        self._stop_threads = stop_threads
        self._rules = rules
        self._target = find_process(pid)
        self._tasks = Tasks(pid, self._target.own_pid, _FEW_FILES)
        self._followed_thread = FollowedThread(pid, self._tasks)
        self._process = ProcessFigures(self._target)
        self._host = clean(socket.gethostname())
        self._last: Snapshot | None = None
        self._begun = time.monotonic()
        self._scanned_at = 0.0
        self._cpu_budget = CpuBudget()
        self._hurried = False
        self._followed: Collection[int] | None = None
        self._busy = threading.Lock()
        self._closed = threading.Event()
        if _is_of_the_kernel(pid):
            raise LocktopError(f"process {self._target} has no program: it is one of the kernel's")
        self._begin()
        try:
            self._sample()
        except OSError as error:
            self._let_go()
            raise self._refused(error) from None
        if why_not := ptrace_access.memory_refused(pid) or (
            "" if self._samples.is_counted else _UNCOUNTED
        ):
            self._let_go()
            raise LocktopError(f"process {self._target} runs without the library, and {why_not}")
        self._thread = threading.Thread(target=self._go_on_sampling, name="sampler", daemon=True)
        self._thread.start()

    def _begin(self) -> None:
        """With the program that the process executes now. Raises LocktopError where its system
        calls and locks are not those that are known here."""
        pid = self._target.pid
        if preloadable.is_of_32_bits(f"{procfs.shared(pid)}/exe"):
            raise LocktopError(
                f"process {self._target} is a 32-bit program: what its threads wait for is not told"
            )
        self._program = self._executed()
        self._resolver = Resolver(pid)
        self._samples = Sampler(pid, self._target.own_pid)
        self._estimator = WaitEstimator()
        self._stacks = NativeStacks(pid, self._resolver, self._stop_threads)
        self._once = OnceWaits(pid, self._stacks)
        libc = CLibrary(pid)
        self._waits = ObjectWaits(pid, libc.version, self._once.is_one, libc.waits_at)
        self._python = PythonStacks(PythonReader(pid), self._stacks.frames)
        self._picture = SamplingBuilder(
            self._resolver, self._estimator, self._stacks.frames, self._python_of
        )
        self._holders = Holders(pid, self._tasks, self._stacks, self._python, self._holds)
        self._holders.follow(self._followed)
        self._classifier = Classifier(self._rules)
        self._now: Mapping[int, Sample] = {}
        self._waiting: Mapping[int, ObjectWait] = {}
        self._at = 0.0
        self._taken = 0  # samples since the last look
        if self._hurried:
            self.hurry()

    def close(self) -> None:
        """Let go of the process."""
        self._closed.set()
        self._thread.join()
        self._let_go()

    def _let_go(self) -> None:
        self._followed_thread.close()
        self._samples.close()
        self._tasks.close()
        self._resolver.close()
        self._python.close()

    def hurry(self) -> None:
        """See Source."""
        self._hurried = True
        self._resolver.hurry()
        self._python.hurry()

    def follow(self, tid: int, locks: Collection[int] | None = None) -> None:
        """See Source."""
        self._followed_thread.follow(tid)
        self._followed = locks
        self._holders.follow(locks)

    def set_level(self, name: str) -> str:
        """See Source."""
        raise LocktopError(f"there is no level to set: in process {self._target} {self._without()}")

    def waits(self) -> Mapping[int, WaitNow] | None:
        """See Source."""
        with self._busy:
            try:
                self._sample()
            except OSError:
                return None
            owners = {wait.what.owner for wait in self._waiting.values()}
            return {
                tid: WaitNow(
                    self._estimator.lock_of(wait).id, wait.what.kind, self._at - wait.since,
                    wait.seq, tid in owners,
                )
                for tid, wait in self._waiting.items()
            }  # fmt: skip

    def scan(self, resolve: bool = False) -> Snapshot:
        """See Source."""
        self._cpu_budget.note_scan(time.monotonic(), time.process_time())
        with self._busy, gc_pause.not_collected():
            if self._last is not None and self._last.ended:
                return self._last
            times = _OF_ALL if resolve else _IN_A_SCAN
            try:
                snapshot = self._scanned(times, resolve)
                if resolve:
                    snapshot = self._resolved(snapshot)
                for _ in range(_MAX_MORE if resolve and self._last is None else 0):
                    if self._hurried or not self._python.asks_for_another_scan:
                        break
                    snapshot = self._resolved(self._scanned(times, resolve))
            except OSError as error:
                return self._after(error)
            told = self._classifier.classify(snapshot)
            self._stacks.begin(times.of_holders)
            told = replace(told, locks=self._holders.told(told, resolve))
            self._followed_thread.beside = self._holders.in_python
            if resolve:
                self._holders.stacks()  # asks for their names
                self._resolver.wait(_NAMES_S)
            self._last = replace(
                told,
                stacks={**told.stacks, **self._holders.stacks()},
                notes=(*told.notes, *self._holders.notes()),
            )
            return self._last

    def _holds(self, asked: Collection[tuple[int, Lock]]) -> Collection[int]:
        owners = self._waits.owners([lock.address for _, lock in asked], self._now)
        return {lock.id for tid, lock in asked if owners.get(lock.address) == tid}

    # ---- samples ----

    def _go_on_sampling(self) -> None:
        """But for where a look has just taken a sample."""
        wait_s = self._cpu_budget.pause_s
        while not self._closed.wait(wait_s):
            begun = time.thread_time()
            with self._busy:
                wait_s = self._at + self._cpu_budget.pause_s - time.monotonic()
                if wait_s > 0.0:
                    continue
                try:
                    self._sample()
                except (FileNotFoundError, ProcessLookupError):
                    return  # the next look says that it has ended
                except OSError:
                    pass  # may pass, too
            self._cpu_budget.note_sample(time.thread_time() - begun)
            wait_s = self._cpu_budget.pause_s

    def _sample(self) -> None:
        stat = procfs.stat(self._target.pid)
        if self._is_another(stat):
            raise ProcessLookupError
        samples = self._samples.take(stat.threads)
        waits = self._waits.of(samples, self._samples.still_sleeps, self._samples.newcomers)
        self._at = self._samples.at
        if len(samples) < len(self._now) or self._samples.newcomers:
            lives = {sample.life for sample in samples.values()}
            self._estimator.forget_threads(lives, samples, self._samples.newcomers)
        self._estimator.add(self._at, waits)
        self._taken += 1
        self._now, self._waiting = samples, waits

    def _is_another(self, stat: procfs.Stat) -> bool:
        """Whether the process has ended, and the pid may be another one's by now."""
        over = stat.state in "ZX" and len(procfs.tids(self._target.pid)) < 2
        return over or stat.start_time != self._target.start_time

    def _executed(self) -> tuple[int, int, bytes] | None:
        """What differs when the process executes a program, also the same one again: then its
        memory lies elsewhere. None where that is not told."""
        try:
            shared = procfs.shared(self._target.pid)
            file, auxiliary = os.stat(f"{shared}/exe"), procfs.read(f"{shared}/auxv")
        except OSError:
            return None
        return (file.st_dev, file.st_ino, auxiliary) if auxiliary else None

    # ---- one look ----

    def _scanned(self, times: _Stacks, resolve: bool) -> Snapshot:
        if self._executed() not in (None, self._program):
            self._let_go_of_program()
        if not self._scanned_at:
            began = time.monotonic()
            self._stacks.prepare()
            time.sleep(max(0.0, began + _FIRST_S - time.monotonic()))
        self._python.begin(self._sleeps_again)
        self._sample()
        if ptrace_access.memory_refused(self._target.pid):
            raise PermissionError  # it was allowed before
        self._find_runners(times.of_waits)
        now = self._at
        interval_s = now - self._scanned_at if self._scanned_at else now - self._begun
        self._scanned_at = now
        self._let_go_of_ended()
        stacks = self._stacks_of_waits(times)
        threads = self._picture.threads(self._now, self._waiting, stacks, now, interval_s)
        locks = self._picture.locks(self._waiting, now, interval_s)
        deadlocks = self._deadlocks(threads, locks, stacks, interval_s)
        self._stacks.begin(times.of_holders)
        threads = self._followed_thread.told(threads, resolve, self._stacks)
        untold = tuple(sorted(
            tid for tid, wait in self._waiting.items() if wait.what.kind is Kind.FUTEX
        ))  # fmt: skip
        main = self._now.get(self._target.own_pid)
        snapshot = Snapshot(
            taken_at=iso(time.time()),
            host=self._host,
            source="proc",
            duration_s=now - self._begun,
            interval_s=interval_s,
            process=self._process.scan(main.name if main else self._target.comm),
            threads=threads,
            locks=locks,
            deadlocks=deadlocks,
            stacks={
                stack: self._stacks.frames(stack)
                for stack in {*stacks.values(), *self._followed_thread.stacks}
            },
            unobserved_waiters=untold,
            level="sampled",
            notes=self._notes(bool(untold), interval_s),
        )
        has_python = self._python.runs_in(snapshot.stacks)
        snapshot = self._python.shown(snapshot, self._sleeps() if has_python else {})
        if self._python.learned:  # of a wait that may be over by the next look
            snapshot = self._renamed(snapshot, self._waiting, now)
        return self._merged(snapshot)

    def _merged(self, snapshot: Snapshot) -> Snapshot:
        """With the stacks of locks those of the threads, where Python's functions are in some."""
        if not self._python.has_merged:
            return snapshot
        locks = builder.with_stacks_of(snapshot.locks, snapshot.threads)
        return replace(snapshot, locks=locks)

    def _sleeps(self) -> Waits:
        return {**self._followed_thread.sleeps, **_numbered(self._waiting.values())}

    def _python_of(self, wait: ObjectWait) -> tuple[Frame, ...]:
        return self._python.of_wait(wait.tid, _numbered([wait]))

    def _let_go_of_ended(self) -> None:
        living = {sample.kernel_tid for sample in self._now.values()}
        self._tasks.keep_only(living)
        self._stacks.keep_only(living)

    def _find_runners(self, budget_s: float) -> None:
        """Who runs the routines that others wait for; with that in it the sample is taken again."""
        waits = self._waiting.values()
        controls = {
            wait.what.address: wait.futex.value for wait in waits if wait.what.kind is Kind.ONCE
        }
        before = self._waits.runners
        self._waits.runners = self._once.runners(
            controls, self._now.values(), self._samples.still_sleeps, budget_s
        )
        if self._waits.runners != before:
            self._sample()

    def _let_go_of_program(self) -> None:
        """It executed another one: its threads and locks are others, whatever their numbers."""
        samples, resolver, python = self._samples, self._resolver, self._python
        self._process.identify()
        self._begun = time.monotonic()
        self._begin()
        samples.close()
        resolver.close()
        python.close()

    def _stacks_of_waits(self, times: _Stacks) -> dict[int, int]:
        """By tid. There may not be time for all new ones: those of the longest waits come first,
        which are asked for once, of these those in contention, and of these one of each lock."""
        found: dict[int, int] = {}
        new: list[tuple[ObjectWait, Sample, Call]] = []
        for tid, wait in self._waiting.items():
            sample, untold = self._now[tid], wait.what.kind is Kind.FUTEX
            stack = self._stacks.known(sample.kernel_tid, wait.seq, untold)
            if stack:
                found[tid] = stack
            else:
                assert sample.call is not None, "it waits"
                new.append((wait, sample, sample.call))
        if not new:
            return found
        others = Counter(self._waiting[tid].what.address for tid in found)
        order = []
        for at, (wait, _, _) in enumerate(new):
            what = wait.what
            order.append((wait.since, what.kind not in CONTENTION_KINDS, others[what.address], at))
            others[what.address] += 1
        order.sort()
        self._stacks.begin(times.of_waits)
        found |= self._new_stacks([new[at] for since, _, _, at in order if since < self._at])
        self._stacks.end_within(times.of_new_waits)
        return found | self._new_stacks([new[at] for since, _, _, at in order if since >= self._at])

    def _new_stacks(self, waits: Sequence[tuple[ObjectWait, Sample, Call]]) -> dict[int, int]:
        """As many as there is time for."""
        found: dict[int, int] = {}
        for at in range(0, len(waits), _STACKS_AT_ONCE):
            if not self._stacks.has_time:
                break
            some = waits[at : at + _STACKS_AT_ONCE]
            self._stacks.expect(call for _, _, call in some)
            still_asleep = self._samples.asleep(sample for _, sample, _ in some)
            for wait, sample, call in some:
                if sample.kernel_tid not in still_asleep:
                    continue
                asleep = call, partial(self._samples.still_sleeps, sample)
                untold = wait.what.kind is Kind.FUTEX
                stack = self._stacks.of(sample.kernel_tid, wait.seq, untold, asleep)
                if stack:
                    found[wait.tid] = stack
        return found

    def _deadlocks(
        self,
        threads: tuple[Thread, ...],
        locks: tuple[Lock, ...],
        stacks: Mapping[int, int],
        interval_s: float,
    ) -> tuple[Deadlock, ...]:
        """What this sample shows, and the next one right after it: a thread that was on no CPU in
        between did nothing. Whether it waits yet, or was let go and waits for a CPU, the kernel is
        asked in between."""
        if not self._may_be_stuck():
            return ()
        by_id = {lock.id: lock for lock in locks}
        first = wait_for_graph.waits(threads, by_id)
        suspects = wait_for_graph.of(first, deadlocks.found(first))
        if not suspects.stops:
            return ()
        asleep = {tid for tid, stop in suspects.stops.items() if stop.asleep}
        states = self._tasks.states(asleep | suspects.ended)
        awake = {tid for tid in asleep if states[tid] != "S"}
        awake |= {tid for tid in suspects.ended if states[tid]}
        self._sample()
        again = self._picture.threads(
            self._now, self._waiting, stacks, self._at, interval_s, again=True
        )
        return deadlocks.confirmed(suspects, wait_for_graph.waits(again, by_id), awake)

    def _may_be_stuck(self) -> bool:
        """Whether somebody is waited for who waits, too, or is no more, or for a barrier. Without
        that nothing of what can be told here is a deadlock, and there is no more to work out."""
        waiting, living = self._waiting, self._now
        for wait in waiting.values():
            by = wait.what.owner or wait.what.awaits
            if wait.what.kind is Kind.BARRIER or (by and (by in waiting or by not in living)):
                return True
        return False

    def _resolved(self, snapshot: Snapshot) -> Snapshot:
        waiting, at = self._waiting, self._at
        self._resolver.wait(_NAMES_S)
        stacks = {stack: self._python.of(stack) for stack in snapshot.stacks}
        snapshot = self._python.resolved(
            replace(snapshot, stacks=stacks), self._sleeps(), self._sleeps_again
        )
        snapshot = self._renamed(self._merged(snapshot), waiting, at)
        notes = dict.fromkeys((*snapshot.notes, *self._python.notes()))
        return replace(snapshot, notes=tuple(notes))

    def _renamed(
        self, snapshot: Snapshot, waiting: Mapping[int, ObjectWait], at: float
    ) -> Snapshot:
        """With the names known by now of locks that threads waited for at this time."""
        locks = self._picture.locks(waiting, at, snapshot.interval_s)
        names = {lock.id: lock.name for lock in locks}
        named = tuple(replace(lock, name=names[lock.id]) for lock in snapshot.locks)
        return replace(snapshot, locks=named)

    def _sleeps_again(self) -> Waits:
        try:
            self._sample()
        except OSError:
            return {}  # what follows says that it has ended
        return {**self._followed_thread.still_asleep(), **_numbered(self._waiting.values())}

    def _notes(self, untold: bool, interval_s: float) -> tuple[str, ...]:
        notes = [
            f"sampled from outside: {self._without()}",
            _NOTE.format(every=1000 * interval_s / max(self._taken, 1)),
        ]
        self._taken = 0
        if untold:
            notes.append(_UNTOLD)
        return (
            *notes,
            *discover.notes(self._target),
            *self._resolver.notes(),
            *self._python.notes(),
        )

    def _without(self) -> str:
        return self._why or "it runs without the library"

    # ---- the end ----

    def _after(self, error: OSError) -> Snapshot:
        """The last picture, of a process that is gone."""
        if self._last is None or isinstance(error, PermissionError) or thread_files.is_ours(error):
            raise self._refused(error)
        threads = tuple(
            replace(thread, alive=False, state=ThreadState.OTHER) for thread in self._last.threads
        )
        self._last = replace(self._last, threads=threads, ended=True)
        return self._last

    def _refused(self, error: OSError) -> LocktopError:
        if isinstance(error, PermissionError):
            return discover.not_ours_to_trace(self._target)
        if thread_files.is_ours(error):
            return LocktopError(f"cannot look at process {self._target}: {error.strerror}")
        return LocktopError(f"process {self._target} has ended")


def _is_of_the_kernel(pid: int) -> bool:
    try:
        return not procfs.maps(pid) and procfs.stat(pid).state not in "ZX"
    except (OSError, ValueError):
        return False  # what follows says more


def _numbered(waits: Iterable[ObjectWait]) -> Waits:
    return {wait.tid: (wait.life, wait.seq) for wait in waits}
