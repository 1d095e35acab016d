"""What is known of the waits that the library does not see (unseen.py): since when, at which
futex, and where in the code. A stack from outside tells; the program notices nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from locktop.collector import futex
from locktop.collector.analysis.classify import Classifier
from locktop.collector.model import Frame, Snapshot, Thread, ThreadState, UnseenWait
from locktop.collector.outside_stacks import OutsideStacks
from locktop.collector.syscalls import Call
from locktop.collector.tasks import Tasks

#: Threads that are asked in one look, some 50 us each, and the time that a new stack takes.
_MOST_ASKED = 32
_STATES = {True: ThreadState.IDLE, False: ThreadState.WAITING, None: ThreadState.OTHER}


class BlindSpot:
    """Asks about these waits, look after look: how long one has lasted is known only from the looks
    that found it there."""

    def __init__(self, pid: int, tasks: Tasks, stacks: OutsideStacks, rules: Classifier) -> None:
        self._pid = pid
        self._tasks = tasks
        self._stacks = stacks
        self._rules = rules
        self._since: dict[int, tuple[tuple[Call, int], float]] = {}  # by tid: its sleep, since when
        self._waits: list[UnseenWait] = []

    def ask(self, runs: Mapping[int, int]) -> None:
        """Ask the kernel about threads that wait unseen. ``runs``: by tid, how often each had been
        put on a CPU before it was found to."""
        before, self._since = self._since, {}
        self._waits = [
            wait
            for tid, count in sorted(runs.items())[:_MOST_ASKED]
            if (wait := self._wait(tid, count, before)) is not None
        ]

    def _wait(
        self, tid: int, runs: int, before: Mapping[int, tuple[tuple[Call, int], float]]
    ) -> UnseenWait | None:
        """None where it is another sleep by now: perhaps one that the library sees."""
        kernel_tid = self._tasks.kernel_tid(tid)
        try:
            call = self._tasks.call(tid)
            wait = futex.of(self._pid, call) if call is not None else None
            if call is None or wait is None:
                return None
            sleep = call, runs
            stack = self._stacks.of(kernel_tid, sleep, entered=True)
            if not runs or self._tasks.runs(tid) != runs:
                return None
        except PermissionError:
            return UnseenWait(tid)
        except OSError:
            return None  # it ended meanwhile
        now = time.monotonic()
        known = before.get(tid)
        since = known[1] if known is not None and known[0] == sleep else now
        self._since[tid] = sleep, since
        return UnseenWait(tid, wait.address, now - since, stack)

    def stacks(self) -> dict[int, tuple[Frame, ...]]:
        """Return the stacks of those that were asked about last, as far as they are named."""
        return {wait.stack: self._stacks.frames(wait.stack) for wait in self._waits if wait.stack}

    def told(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot, which has the stacks, with what was learned last, and what the names
        of the functions say of it."""
        if not self._waits:
            return snapshot
        stacks = snapshot.stacks
        threads = {thread.tid: thread for thread in snapshot.threads}
        unseen = tuple(
            self._named(wait, stacks.get(wait.stack, ()), threads.get(wait.tid))
            for wait in self._waits
        )
        states = {wait.tid: _STATES[wait.idle] for wait in unseen}
        return replace(
            snapshot,
            unseen=unseen,
            threads=tuple(
                replace(thread, state=states[thread.tid]) if thread.tid in states else thread
                for thread in snapshot.threads
            ),
        )

    def _named(
        self, wait: UnseenWait, frames: tuple[Frame, ...], thread: Thread | None
    ) -> UnseenWait:
        type_, rule = self._rules.of_functions(frames, thread.name if thread else "")
        if rule is None:
            return replace(wait, type=type_)
        return replace(wait, type=type_, idle=rule.idle, why=rule.name)
