"""The threads that certainly run initialisers of static variables of C++ functions.

A guard does not name its thread. But a waiter's stack shows the function that waits for the guard,
and the machine code shows which calls of this function are a part of the initialisation. So a
thread whose stack leads over such a call runs the initialiser, until its present wait ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from locktop.collector.analysis.guarded_initialisers import callers_of_wait
from locktop.collector.model import Contents, Frame, Kind, Wait
from locktop.collector.sources.probes.native_stacks import NativeStacks


class _GuardWait(NamedTuple):
    """A wait for a guard."""

    address: int
    #: The callers of __cxa_guard_acquire(), innermost first.
    callers: Sequence[Frame]

    @property
    def acquired(self) -> int:
        """The return address of the call."""
        return self.callers[0].address


class _Question(NamedTuple):
    """Whether one wait shows a thread in an initialisation."""

    tid: int
    seq: int
    guard: int
    acquired: int
    returns: int


class StaticInitialisers:
    """Finds these threads in one process. Each wait is looked at once."""

    def __init__(self) -> None:
        self._answers: dict[_Question, bool] = {}

    def find(self, snapshot: Contents, stacks: NativeStacks) -> dict[int, int]:
        """Return by tid of each waiter the thread that runs the initialiser, if that is certain.

        Args:
            snapshot: the scan, with names of functions.
            stacks: the stacks of the process.
        """
        waits = {
            thread.tid: thread.waiting_for
            for thread in snapshot.threads
            if thread.alive and thread.waiting_for is not None and not thread.waiting_for.timed
        }
        guards = _guard_waits(snapshot, waits)
        before, self._answers = self._answers, {}
        runner_of: dict[int, int] = {}
        for tid, guard in guards.items():
            runners = {
                question.tid
                for question in _questions(guard, waits, snapshot.stacks, guards)
                if self._answer(question, before, stacks)
            }
            if len(runners) == 1:
                runner_of[tid] = runners.pop()
        return runner_of

    def _answer(
        self, question: _Question, before: Mapping[_Question, bool], stacks: NativeStacks
    ) -> bool:
        answer = self._answers.get(question, before.get(question))
        if answer is None:
            unwinder = stacks.unwinder()
            answer = unwinder is not None and unwinder.is_initialising(
                question.guard, question.acquired, question.returns
            )
        self._answers[question] = answer
        return answer


def _guard_waits(snapshot: Contents, waits: Mapping[int, Wait]) -> dict[int, _GuardWait]:
    callers = {
        tid: frames
        for tid, wait in waits.items()
        if wait.kind is Kind.FUTEX
        and (frames := callers_of_wait(snapshot.stacks.get(wait.stack, ())))
    }
    if not callers:
        return {}
    addresses = {lock.id: lock.address for lock in snapshot.locks}
    return {
        tid: _GuardWait(addresses[waits[tid].lock], frames)
        for tid, frames in callers.items()
        if waits[tid].lock in addresses
    }


def _questions(
    guard: _GuardWait,
    waits: Mapping[int, Wait],
    stacks: Mapping[int, Sequence[Frame]],
    guards: Mapping[int, _GuardWait],
) -> Iterator[_Question]:
    """Yield the questions about all frames of the function that waits for the guard."""
    # Several frames of one address are functions that the compiler put into one.
    functions = {frame.function for frame in guard.callers if frame.address == guard.acquired}
    module = guard.callers[0].module
    for tid, wait in waits.items():
        frames = guards[tid].callers if tid in guards else stacks.get(wait.stack, ())
        returns = {
            frame.address
            for frame in frames
            if frame.function in functions and frame.module == module
        }
        for address in sorted(returns - {guard.acquired}):
            yield _Question(tid, wait.seq, guard.address, guard.acquired, address)
