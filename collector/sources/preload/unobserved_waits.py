"""Threads that wait in futex calls unknown to the library: for what, where, and since when."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import replace

from locktop.collector.analysis.idle.classifier import Classifier
from locktop.collector.analysis.idle.rules import IdleRule
from locktop.collector.linux import futex
from locktop.collector.linux.threads import KernelThreads
from locktop.collector.model import Draft, Frame, Thread, ThreadState, UnobservedWait
from locktop.collector.sources.probes.native_stacks import NativeStacks
from locktop.collector.symbols.resolver import Resolver

#: Threads that are asked in one look, some 50 us each, and the time that a new stack takes.
_MAX_ASKED = 32
_MAX_KEPT = 1000
_STATES = {True: ThreadState.IDLE, False: ThreadState.WAITING, None: ThreadState.OTHER}


class _Sleep(NamedTuple):
    runs: int  # how often the thread had been put on a CPU before
    address: int  # of the futex
    since: float  # first seen: time.monotonic()
    stack: int


class UnobservedWaitProbe:
    """Asks about these waits, look after look: how long one has lasted is known only from the looks
    that found it there."""

    def __init__(
        self,
        pid: int,
        tasks: KernelThreads,
        stacks: NativeStacks,
        resolver: Resolver,
        rules: Classifier,
    ) -> None:
        self._pid = pid
        self._tasks = tasks
        self._stacks = stacks
        self._resolver = resolver
        self._rules = rules
        self._sleeps: dict[int, _Sleep] = {}  # by tid
        self._waits: list[UnobservedWait] = []
        #: By stack and name of the thread: the frames as they were named, and what they tell.
        self._places: dict[tuple[int, str], tuple[tuple[Frame, ...], str, IdleRule | None]] = {}

    def ask(self, runs: Mapping[int, int]) -> None:
        """Ask the kernel about threads that wait unseen. ``runs``: by tid, how often each had been
        put on a CPU before it was found to; one that has not run since the last look is as it was.
        """
        before, self._sleeps = self._sleeps, {}
        self._waits = [
            wait
            for tid, count in sorted(runs.items())[:_MAX_ASKED]
            if (wait := self._wait(tid, count, before.get(tid))) is not None
        ]

    def _wait(self, tid: int, runs: int, known: _Sleep | None) -> UnobservedWait | None:
        """None where it is another sleep by now: perhaps one that the library sees."""
        try:
            if known is None or known.runs != runs or not known.stack:
                known = self._asked(tid, runs, known)
        except PermissionError:
            return UnobservedWait(tid)
        except OSError:
            return None  # it ended meanwhile
        if known is None:
            return None
        self._sleeps[tid] = known
        duration_s = time.monotonic() - known.since
        return UnobservedWait(tid, known.address, "", duration_s, known.stack)

    def _asked(self, tid: int, runs: int, known: _Sleep | None) -> _Sleep | None:
        call = self._tasks.call(tid)
        wait = futex.parse_wait(self._pid, call) if call is not None else None
        if wait is None:
            return None
        stack = self._stacks.of(self._tasks.kernel_tid(tid), (call, runs), entered=True)
        if not runs or self._tasks.runs(tid) != runs:
            return None
        goes_on = known is not None and known.runs == runs
        since = known.since if known is not None and goes_on else time.monotonic()
        return _Sleep(runs, wait.address, since, stack)

    def annotate(self, snapshot: Draft) -> None:
        """Fill in what ``ask`` learned, and what the functions' names say of each wait.

        The stacks of these waits are added too, as far as they are named by now.
        """
        if not self._waits:
            return
        frames = {wait.stack: self._stacks.frames(wait.stack) for wait in self._waits if wait.stack}
        threads = {thread.tid: thread for thread in snapshot.threads}
        waits = tuple(
            self._named(wait, frames.get(wait.stack, ()), threads.get(wait.tid))
            for wait in self._waits
        )
        states = {wait.tid: _STATES[wait.idle] for wait in waits}
        snapshot.stacks = {**snapshot.stacks, **frames}
        snapshot.unobserved_waits = waits
        snapshot.threads = tuple(
            replace(thread, state=states[thread.tid]) if thread.tid in states else thread
            for thread in snapshot.threads
        )

    def request_names(self) -> None:
        """Request the names of the functions and futexes of the waits that ``ask`` found."""
        for wait in self._waits:
            self._resolver.data(wait.address)
            if wait.stack:
                self._stacks.frames(wait.stack)

    def _named(
        self, wait: UnobservedWait, frames: tuple[Frame, ...], thread: Thread | None
    ) -> UnobservedWait:
        stack, name = wait.stack, thread.name if thread is not None else ""
        known = self._places.get((stack, name))
        if known is None or known[0] is not frames:
            if len(self._places) >= _MAX_KEPT:
                self._places.clear()
            known = self._places[stack, name] = frames, *self._rules.of_functions(frames, name)
        _, type_, rule = known
        variable = self._resolver.data(wait.address) or ""
        if rule is None:
            return replace(wait, name=variable, type=type_)
        return replace(wait, name=variable, type=type_, idle=rule.idle, why=rule.name)
