"""The sampled source: a process that nobody prepared, looked at through /proc and its memory.

Nothing in it stops and nothing is changed. A thread of ours takes samples, as often as a share of a
CPU allows; a look takes one more and makes a picture of all.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import replace

from locktop.collector import discover, procfs
from locktop.collector.analysis import deadlock, waitgraph
from locktop.collector.analysis.classify import Classifier
from locktop.collector.analysis.idle_rules import Rules
from locktop.collector.closer_look import CloserLook
from locktop.collector.errors import LocktopError
from locktop.collector.holder_now import Holders
from locktop.collector.libc_version import glibc_of
from locktop.collector.model import (
    CONTENTION_KINDS,
    Deadlock,
    Kind,
    Lock,
    Snapshot,
    Thread,
    ThreadState,
)
from locktop.collector.once_waits import OnceWaits
from locktop.collector.outside_picture import OutsidePicture
from locktop.collector.outside_stacks import OutsideStacks
from locktop.collector.outside_waits import OutsideWait, OutsideWaits
from locktop.collector.process import ProcessFigures, iso
from locktop.collector.sampled import Sampled
from locktop.collector.samples import Sample, Samples
from locktop.collector.sanitize import clean
from locktop.collector.source import WaitNow
from locktop.collector.symbols.resolver import Resolver
from locktop.collector.tasks import Tasks

#: Of a CPU, for samples.
_SHARE = 0.02
_SHORTEST_S, _LONGEST_S = 0.005, 0.5  # between two of them
#: Between the two samples of a first look: one alone tells no time.
_FIRST_S = 0.05
_NAMES_S = 30.0
#: For call stacks that are new in a look; the rest come in later ones.
_STACKS_S, _STACKS_OF_ALL_S = 0.01, 2.0
_NOTE = (
    "there is a sample every {every:.0f} ms: shorter waits are met by chance; how often locks were"
    " taken, and how long they were held, is not known"
)
_UNTOLD = "some threads wait in futex calls of which it cannot be told for what, or who holds it"


class ProcSource:
    """Samples one process."""

    def __init__(self, pid: int, rules: Rules | None = None, why: str = "") -> None:
        """``rules``: see attach(); ``why``: what to say of the library that is not there.

        Raises LocktopError where the process may not be looked into."""
        self._why = why
        self._classifier = Classifier(rules)
        self._target = discover.find(pid)
        self._tasks = Tasks(pid, self._target.own_pid)
        self._process = ProcessFigures(self._target)
        self._host = clean(socket.gethostname())
        self._last: Snapshot | None = None
        self._begun = time.monotonic()
        self._looked_at = 0.0
        self._every_s = _SHORTEST_S
        self._hurried = False
        self._busy = threading.Lock()
        self._closed = threading.Event()
        self._begin()
        try:
            self._sample()
        except OSError as error:
            self._let_go()
            raise self._refused(error) from None
        self._thread = threading.Thread(target=self._go_on_sampling, name="sampler", daemon=True)
        self._thread.start()

    def _begin(self) -> None:
        """With the program that the process executes now."""
        pid = self._target.pid
        self._exe = self._executable()
        self._resolver = Resolver(pid)
        if self._hurried:
            self._resolver.hurry()
        self._samples = Samples(pid, self._target.own_pid)
        self._sampled = Sampled()
        self._stacks = OutsideStacks(pid, self._resolver)
        self._once = OnceWaits(pid, self._stacks)
        self._waits = OutsideWaits(pid, glibc_of(pid), self._once.is_one)
        self._picture = OutsidePicture(self._resolver, self._sampled, self._stacks.frames)
        self._holders = Holders(pid, self._tasks, self._stacks)
        self._closer = CloserLook(self._tasks)
        self._now: Mapping[int, Sample] = {}
        self._waiting: Mapping[int, OutsideWait] = {}
        self._at = 0.0

    def close(self) -> None:
        """Let go of the process."""
        self._closed.set()
        self._thread.join()
        self._let_go()

    def _let_go(self) -> None:
        self._closer.close()
        self._samples.close()
        self._tasks.close()
        self._resolver.close()

    def hurry(self) -> None:
        """See Source."""
        self._hurried = True
        self._resolver.hurry()

    def follow(self, tid: int) -> None:
        """See Source."""
        self._closer.follow(tid)

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
                    self._sampled.lock_of(wait).id, wait.what.kind, self._at - wait.since, wait.seq,
                    tid in owners,
                )
                for tid, wait in self._waiting.items()
            }  # fmt: skip

    def look(self, resolve: bool = False) -> Snapshot:
        """See Source."""
        with self._busy:
            if self._last is not None and self._last.ended:
                return self._last
            try:
                snapshot = self._looked(_STACKS_OF_ALL_S if resolve else _STACKS_S)
            except OSError as error:
                return self._after(error)
            if resolve:
                snapshot = self._resolved(snapshot)
            told = self._classifier.told(snapshot)
            told = replace(
                told,
                locks=self._holders.told(told.locks, told.threads),
                threads=self._closer.told(told.threads, resolve),
            )
            if resolve:
                self._resolver.wait(_NAMES_S)
            self._last = replace(told, stacks={**told.stacks, **self._holders.stacks()})
            return self._last

    # ---- samples ----

    def _go_on_sampling(self) -> None:
        while not self._closed.wait(self._every_s):
            begun = time.thread_time()
            with self._busy:
                try:
                    self._sample()
                except OSError:
                    return  # the next look says why
            took_s = time.thread_time() - begun
            self._every_s = min(max(took_s / _SHARE, _SHORTEST_S), _LONGEST_S)

    def _sample(self) -> None:
        if self._is_another():
            raise ProcessLookupError
        samples = self._samples.take()
        waits = self._waits.of(samples, self._samples.still_sleeps)
        self._at = self._samples.at
        self._sampled.add(self._at, waits)
        if len(samples) < len(self._now):
            self._sampled.forget_threads(samples)
        self._now, self._waiting = samples, waits

    def _is_another(self) -> bool:
        """Whether the pid is another process's by now."""
        stat = procfs.stat(self._target.pid)
        over = stat.state in "ZX" and len(procfs.tids(self._target.pid)) < 2
        return over or stat.start_time != self._target.start_time

    def _executable(self) -> str:
        try:
            return os.readlink(f"/proc/{self._target.pid}/exe")
        except OSError:
            return ""

    # ---- one look ----

    def _looked(self, stacks_s: float) -> Snapshot:
        exe = self._executable()
        if exe != self._exe and exe:
            self._let_go_of_program()
        if not self._looked_at:
            time.sleep(_FIRST_S)
        self._sample()
        self._find_runners(stacks_s)
        now = self._at
        interval_s = now - self._looked_at if self._looked_at else now - self._begun
        self._looked_at = now
        self._stacks.begin(stacks_s)
        stacks = self._stacks_of_waits()
        threads = self._picture.threads(self._now, self._waiting, stacks, now, interval_s)
        locks = self._picture.locks(self._waiting, now, interval_s)
        deadlocks = self._deadlocks(threads, locks, stacks, interval_s)
        untold = tuple(sorted(
            tid for tid, wait in self._waiting.items() if wait.what.kind is Kind.FUTEX
        ))  # fmt: skip
        main = self._now.get(self._target.own_pid)
        return Snapshot(
            taken_at=iso(time.time()),
            host=self._host,
            source="proc",
            duration_s=now - self._begun,
            interval_s=interval_s,
            process=self._process.look(main.name if main else self._target.comm),
            threads=threads,
            locks=locks,
            deadlocks=deadlocks,
            stacks={stack: self._stacks.frames(stack) for stack in set(stacks.values())},
            unseen_waiters=untold,
            level="sampled",
            notes=self._notes(bool(untold)),
        )

    def _find_runners(self, stacks_s: float) -> None:
        """Who runs the routines that others wait for; with that in it the sample is taken again."""
        waits = self._waiting.values()
        controls = {
            wait.what.address: wait.futex.value for wait in waits if wait.what.kind is Kind.ONCE
        }
        before = self._waits.runners
        self._waits.runners = self._once.runners(
            controls, self._now.values(), self._samples.still_sleeps, stacks_s
        )
        if self._waits.runners != before:
            self._sample()

    def _let_go_of_program(self) -> None:
        """It executed another one: its threads and locks are others, whatever their numbers."""
        self._samples.close()
        self._resolver.close()
        self._process.identify()
        self._begun = time.monotonic()
        self._begin()

    def _stacks_of_waits(self) -> dict[int, int]:
        """By tid, those in contention first: there may not be time for all."""
        found: dict[int, int] = {}
        order = sorted(
            self._waiting.values(), key=lambda wait: wait.what.kind not in CONTENTION_KINDS
        )
        for wait in order:
            untold = wait.what.kind is Kind.FUTEX
            stack = self._stacks.of(self._now[wait.tid].kernel_tid, wait.seq, entered=untold)
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
        between was asleep all the time."""
        by_id = {lock.id: lock for lock in locks}
        first = waitgraph.waits(threads, by_id)
        suspects = waitgraph.of(first, deadlock.found(first))
        if not suspects.stops:
            return ()
        self._sample()
        again = self._picture.threads(self._now, self._waiting, stacks, self._at, interval_s)
        return deadlock.confirmed(suspects, waitgraph.waits(again, by_id))

    def _resolved(self, snapshot: Snapshot) -> Snapshot:
        self._resolver.wait(_NAMES_S)
        locks = self._picture.locks(self._waiting, self._at, snapshot.interval_s)
        renamed = {lock.id: lock.name for lock in locks}
        named = tuple(replace(lock, name=renamed[lock.id]) for lock in snapshot.locks)
        stacks = {stack: self._stacks.frames(stack) for stack in snapshot.stacks}
        return replace(snapshot, locks=named, stacks=stacks)

    def _notes(self, untold: bool) -> tuple[str, ...]:
        notes = [
            f"sampled from outside: {self._without()}",
            _NOTE.format(every=1000 * self._every_s),
        ]
        if untold:
            notes.append(_UNTOLD)
        return (*notes, *self._resolver.notes())

    def _without(self) -> str:
        return self._why or "it runs without the library"

    # ---- the end ----

    def _after(self, error: OSError) -> Snapshot:
        """The last picture, of a process that is gone."""
        if isinstance(error, PermissionError) or self._last is None:
            raise self._refused(error)
        threads = tuple(
            replace(thread, alive=False, state=ThreadState.OTHER) for thread in self._last.threads
        )
        self._last = replace(self._last, threads=threads, ended=True)
        return self._last

    def _refused(self, error: OSError) -> LocktopError:
        if isinstance(error, PermissionError):
            return discover.not_ours_to_trace(self._target)
        return LocktopError(f"process {self._target} has ended")
