"""Which questions about machine code find the thread that runs an initialiser."""

from __future__ import annotations

from typing import cast

from msgspec.structs import replace
from unit.builders import records

from locktop.collector.model import Frame, Kind, Snapshot, ThreadState
from locktop.collector.sources.probes.native_stacks import NativeStacks
from locktop.collector.sources.probes.static_initialisers import StaticInitialisers

GUARD = 0x4010
ACQUIRED, WITHIN, BEFORE = 0x1100, 0x1120, 0x1180


class AnsweredStacks:
    """Stands for the stacks of a process whose code says what is within the initialisation."""

    def __init__(self) -> None:
        self.questions: list[tuple[int, int, int]] = []

    def unwinder(self) -> AnsweredStacks:
        return self

    def is_initialising(self, guard: int, acquired: int, returns: int) -> bool:
        self.questions.append((guard, acquired, returns))
        return (guard, acquired, returns) == (GUARD, ACQUIRED, WITHIN)


def _frame(function: str, address: int) -> Frame:
    return replace(records.frame(function, "a.cc", 7), address=address)


def _snapshot(*returns: int) -> Snapshot:
    """Thread 1 waits for the guard. The others wait for a mutex, in the same function."""
    for_guard = records.wait(2, Kind.FUTEX, 5.0, stack=1)
    threads = [records.thread(1, "holder", ThreadState.WAITING, waiting_for=for_guard)]
    stacks = {1: (_frame("__cxa_guard_acquire", 0x9000), _frame("config", ACQUIRED))}
    for tid, address in enumerate(returns, 2):
        for_mutex = records.wait(1, Kind.MUTEX, 5.0, 1, stack=tid)
        threads.append(records.thread(tid, "other", ThreadState.WAITING, waiting_for=for_mutex))
        stacks[tid] = (_frame("load", 0x2000), _frame("config", address))
    guard = replace(records.lock(2, "guard", Kind.FUTEX), address=GUARD)
    return records.snapshot(tuple(threads), (records.lock(1, "g_mutex"), guard), stacks=stacks)


def _found(probe: StaticInitialisers, snapshot: Snapshot, stacks: AnsweredStacks) -> dict[int, int]:
    return probe.find(snapshot, cast(NativeStacks, stacks))


def test_the_thread_within_the_initialisation_runs_it() -> None:
    stacks, probe = AnsweredStacks(), StaticInitialisers()
    assert _found(probe, _snapshot(BEFORE, WITHIN), stacks) == {1: 3}
    count = len(stacks.questions)
    assert _found(probe, _snapshot(BEFORE, WITHIN), stacks) == {1: 3}
    assert len(stacks.questions) == count, "the same waits need no second reading of the code"


def test_no_thread_or_two_threads_prove_nothing() -> None:
    assert _found(StaticInitialisers(), _snapshot(BEFORE), AnsweredStacks()) == {}
    assert _found(StaticInitialisers(), _snapshot(WITHIN, WITHIN), AnsweredStacks()) == {}


def test_a_scan_without_such_a_wait_asks_nothing() -> None:
    stacks, snapshot = AnsweredStacks(), _snapshot(WITHIN)
    without = replace(snapshot, threads=snapshot.threads[1:])
    assert _found(StaticInitialisers(), without, stacks) == {}
    assert not stacks.questions
