"""Threads that wait in futex calls which the library does not observe."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from support.shared_file import SharedFile, key
from unit.builders import records
from unit.builders.raw_threads import futex_wait, raw_thread, task, wait_block

from locktop.collector.analysis.idle.classifier import Classifier
from locktop.collector.analysis.idle.rules import IdleRule
from locktop.collector.linux.syscalls import SystemCall
from locktop.collector.linux.threads import KernelThread, KernelThreads
from locktop.collector.model import Frame, ThreadState, UnobservedWait
from locktop.collector.native import lib
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.reader import RawThread, Reader
from locktop.collector.shm.segment import SharedMemory
from locktop.collector.sources.preload import unobserved_waits
from locktop.collector.sources.preload.unobserved_waits import UnobservedWaitProbe, find_waiters
from locktop.collector.sources.probes.native_stacks import NativeStacks
from locktop.collector.symbols.resolver import Resolver

MUTEX = key(lib.LT_KIND_MUTEX, 0x1000)
TID = 11


class Kernel(KernelThreads):
    """Where threads sleep, in which calls, and how often each has run."""

    def __init__(self) -> None:
        self.wchan: dict[int, str] = {}
        self.calls: dict[int, SystemCall | OSError | None] = {TID: futex_wait(0x1000)}
        self.run_counts: dict[int, int] = {TID: 5}
        self.requests: list[int] = []

    def asleep_since(self, tid: int) -> float | None:
        """This kernel does not tell."""
        return None

    def sleeps_in(self, tid: int) -> str:
        self.requests.append(tid)
        return self.wchan.get(tid, "futex_do_wait")

    def call(self, tid: int) -> SystemCall | None:
        self.requests.append(tid)
        found = self.calls[tid]
        if isinstance(found, OSError):
            raise found
        return found

    def kernel_tid(self, tid: int) -> int:
        return tid

    def runs(self, tid: int) -> int:
        return self.run_counts[tid]


class File:
    """A file whose threads are read again, after those of the scan."""

    def __init__(self, directory: Path) -> None:
        self.file = SharedFile()
        self.path = self.file.save(directory)
        self.memory = SharedMemory(os.open(self.path, os.O_RDONLY), str(self.path))
        self.reader = Reader(self.memory, Clock(self.memory.header()))
        self.kernel = Kernel()

    def write(self) -> None:
        self.path.write_bytes(self.file.data)

    def add(self, tid: int) -> tuple[Any, RawThread]:
        """Add a thread of the library; return its block and its reading in the scan."""
        block = self.file.add_thread(tid)
        return block, raw_thread(tid, offset=self.file.offset_of(block))

    def waiters(self, found: Mapping[int, KernelThread], *raws: RawThread) -> tuple[int, ...]:
        self.write()
        newest = {raw.block.tid: raw for raw in raws}
        return find_waiters(found, newest, self.kernel, self.reader, self.memory)


@pytest.fixture
def file(tmp_path: Path) -> File:
    return File(tmp_path)


def asleep(*tids: int) -> dict[int, KernelThread]:
    return {tid: task(tid) for tid in tids}


def test_sleepers_in_a_futex_without_an_observed_wait_are_found(file: File) -> None:
    _, unwatched = file.add(12)
    _, waits = file.add(13)
    waits = replace(waits, wait=wait_block(MUTEX))
    file.kernel.wchan[14] = "pipe_read"
    found = asleep(14, 13, 12, TID) | {15: task(15, "R")}
    assert file.waiters(found, unwatched, waits) == (TID, 12)


def test_only_the_first_sleepers_are_checked(file: File) -> None:
    assert file.waiters(asleep(*range(100, 200))) == tuple(range(100, 164))


def test_a_thread_that_came_to_the_library_meanwhile_is_not_known_yet(file: File) -> None:
    file.file.add_thread(TID)
    assert file.waiters(asleep(TID, 12)) == (12,)


@pytest.mark.parametrize(
    ("seq", "wait_key", "waits"), [(2, 0, True), (0, 0, True), (3, 0, False), (2, MUTEX, False)]
)
def test_a_thread_whose_wait_began_meanwhile_is_observed(
    file: File, seq: int, wait_key: int, waits: bool
) -> None:
    block, raw = file.add(TID)
    block.wait.seq, block.wait.key = seq, wait_key
    assert bool(file.waiters(asleep(TID), raw)) is waits


def test_a_thread_that_waited_while_the_kernel_was_queried_is_observed(file: File) -> None:
    block, raw = file.add(TID)

    class WaitsMeanwhile(Kernel):
        def sleeps_in(self, tid: int) -> str:
            block.wait.seq = 2
            file.write()
            return "futex_do_wait"

    file.kernel = WaitsMeanwhile()
    assert file.waiters(asleep(TID), raw) == ()


def test_such_threads_are_not_idle_and_a_note_says_why() -> None:
    threads = tuple(records.thread(tid, "t", ThreadState.IDLE) for tid in (11, 12))
    draft = records.snapshot(threads, ()).draft()
    before = draft.notes
    unobserved_waits.annotate_waiters(draft, ())
    assert (draft.unobserved_waiters, draft.notes) == ((), before)
    unobserved_waits.annotate_waiters(draft, (12,))
    assert [thread.state for thread in draft.threads] == [ThreadState.IDLE, ThreadState.OTHER]
    assert draft.unobserved_waiters == (12,)
    assert len(draft.notes) == len(before) + 1
    draft.level, draft.notes = "dormant", ()
    unobserved_waits.annotate_waiters(draft, (12,))
    assert draft.notes == ()


class Stacks(NativeStacks):
    """The stack of each thread; 0: it cannot be unwound now."""

    def __init__(self) -> None:
        self.stack = 77
        self.unwound = 0
        self.named: list[int] = []
        self.known: tuple[Frame, ...] = (records.frame("gomp_wait", "wait.c", 1),)

    def stack_id(self, tid: int, sleep: object, entered: bool = False) -> int:
        self.unwound += 1
        assert entered
        return self.stack

    def frames(self, stack: int) -> tuple[Frame, ...]:
        self.named.append(stack)
        return self.known


class Variables(Resolver):
    """The variable at each address."""

    def __init__(self) -> None:
        self.requested: list[int] = []

    def data(self, address: int) -> str | None:
        self.requested.append(address)
        return "barrier" if address == 0x1000 else None


class Rules(Classifier):
    """One rule for all functions."""

    def __init__(self) -> None:
        super().__init__(None)
        self.requests = 0
        self.rule: IdleRule | None = IdleRule(idle=True, name="pool")

    def classify_stack(self, frames: tuple[Frame, ...], thread: str) -> tuple[str, IdleRule | None]:
        self.requests += 1
        return f"lock of {thread}", self.rule


class Probe:
    """A probe, and the parts that it queries."""

    def __init__(self) -> None:
        self.kernel, self.stacks = Kernel(), Stacks()
        self.variables, self.rules = Variables(), Rules()
        self.probe = UnobservedWaitProbe(1, self.kernel, self.stacks, self.variables, self.rules)

    def waits(self, runs: Mapping[int, int]) -> tuple[UnobservedWait, ...]:
        self.probe.query(runs)
        draft = records.snapshot((records.thread(TID, "omp", ThreadState.OTHER),), ()).draft()
        draft.unobserved_waiters = tuple(sorted(runs))
        self.probe.annotate(draft)
        self.draft = draft
        return draft.unobserved_waits


@pytest.fixture
def probe() -> Probe:
    return Probe()


def test_a_wait_has_its_futex_its_stack_and_its_meaning(probe: Probe) -> None:
    (wait,) = probe.waits({TID: 5})
    assert (wait.tid, wait.address, wait.name, wait.stack) == (TID, 0x1000, "barrier", 77)
    assert (wait.type, wait.idle, wait.why) == ("lock of omp", True, "pool")
    assert wait.duration_s is not None
    assert 0.0 <= wait.duration_s < 60.0
    assert probe.draft.threads[0].state is ThreadState.IDLE
    assert probe.draft.stacks[77] == probe.stacks.known


@pytest.mark.parametrize(
    ("rule", "idle", "state"),
    [
        (None, None, ThreadState.OTHER),
        (IdleRule(idle=False, name="lock"), False, ThreadState.WAITING),
    ],
)
def test_the_rule_decides_the_state(
    probe: Probe, rule: IdleRule | None, idle: bool | None, state: ThreadState
) -> None:
    probe.rules.rule = rule
    (wait,) = probe.waits({TID: 5})
    assert (wait.idle, wait.why) == (idle, rule.name if rule else "")
    assert wait.type == "lock of omp"
    assert probe.draft.threads[0].state is state


def test_a_thread_that_has_not_run_is_not_queried_again(
    probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: start)
    (first,) = probe.waits({TID: 5})
    assert first.duration_s == 0.0
    monkeypatch.setattr(time, "monotonic", lambda: start + 3.0)
    (second,) = probe.waits({TID: 5})
    assert second.duration_s == 3.0
    assert (probe.kernel.requests, probe.stacks.unwound) == ([TID], 1)
    probe.kernel.run_counts[TID] = 6
    (third,) = probe.waits({TID: 6})
    assert third.duration_s == 0.0
    assert probe.stacks.unwound == 2


def test_a_stack_that_could_not_be_unwound_is_tried_again(
    probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: start)
    probe.stacks.stack = 0
    assert probe.waits({TID: 5})[0].stack == 0
    assert 0 not in probe.draft.stacks
    probe.stacks.stack = 78
    monkeypatch.setattr(time, "monotonic", lambda: start + 3.0)
    (wait,) = probe.waits({TID: 5})
    assert (wait.stack, wait.duration_s) == (78, 3.0)


def test_a_thread_that_ran_meanwhile_is_in_another_sleep(probe: Probe) -> None:
    probe.kernel.run_counts[TID] = 6
    assert probe.waits({TID: 5}) == ()


def test_a_kernel_that_does_not_count_shows_no_such_wait(probe: Probe) -> None:
    probe.kernel.run_counts[TID] = 0
    assert probe.waits({TID: 0}) == ()


@pytest.mark.parametrize("call", [None, SystemCall(0, (0,) * 6, 0, 0), FileNotFoundError()])
def test_a_thread_in_another_call_or_ended_has_no_such_wait(
    probe: Probe, call: SystemCall | OSError | None
) -> None:
    probe.kernel.calls[TID] = call
    assert probe.waits({TID: 5}) == ()


def test_a_refused_call_leaves_a_wait_without_details(probe: Probe) -> None:
    probe.kernel.calls[TID] = PermissionError()
    (wait,) = probe.waits({TID: 5})
    assert (wait.tid, wait.address, wait.duration_s, wait.stack) == (TID, 0, None, 0)


def test_a_limited_number_of_threads_is_queried(probe: Probe) -> None:
    tids = range(100, 200)
    probe.kernel.calls = dict.fromkeys(tids, futex_wait(0x2000))
    probe.kernel.run_counts = dict.fromkeys(tids, 1)
    waits = probe.waits(dict.fromkeys(reversed(tids), 1))
    assert [wait.tid for wait in waits] == list(range(100, 132))
    assert waits[0].name == ""


def test_a_verdict_stays_until_the_names_of_its_stack_change(probe: Probe) -> None:
    probe.waits({TID: 5})
    probe.waits({TID: 5})
    assert probe.rules.requests == 1
    probe.stacks.known = (records.frame("gomp_wait", "wait.c", 2),)
    probe.waits({TID: 5})
    assert probe.rules.requests == 2


def test_verdicts_are_kept_for_a_limited_number_of_stacks(
    probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unobserved_waits, "MAX_KEPT", 2)
    for runs, stack in enumerate((1, 2, 1, 2, 3, 3), 1):
        probe.stacks.stack = stack
        probe.kernel.run_counts[TID] = runs
        probe.waits({TID: runs})
    assert probe.rules.requests == 3
    probe.stacks.stack, probe.kernel.run_counts[TID] = 1, 9
    probe.waits({TID: 9})
    assert probe.rules.requests == 4


def test_names_are_requested_for_the_futex_and_the_stack(probe: Probe) -> None:
    probe.probe.query({TID: 5})
    probe.probe.request_names()
    assert (probe.variables.requested, probe.stacks.named) == ([0x1000], [77])
    probe = Probe()
    probe.stacks.stack = 0
    probe.probe.query({TID: 5})
    probe.probe.request_names()
    assert (probe.variables.requested, probe.stacks.named) == ([0x1000], [])


def test_without_waits_the_draft_stays_as_it_is(probe: Probe) -> None:
    probe.waits({TID: 5})
    assert probe.waits({}) == ()
    assert probe.draft.threads[0].state is ThreadState.OTHER
