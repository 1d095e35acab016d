"""The Python functions of a wait, and the requests to their reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest
from msgspec.structs import replace
from unit.builders import records
from unit.builders.python_stacks import EVALUATION, WAIT, native, runs

from locktop.collector.model import (
    Deadlock,
    DeadlockEdge,
    Frame,
    Kind,
    Process,
    Snapshot,
    Thread,
    ThreadState,
    Wait,
    WaitStack,
)
from locktop.collector.model.frames import CUT_WHEN_RECORDED
from locktop.collector.render.documents.snapshot_codec import document
from locktop.collector.sources.probes.python_shares import MetWait
from locktop.collector.sources.probes.python_stacks import FIRST_ID, PythonStacks, WaitKeys
from locktop.collector.symbols.python.frame_reader import PythonReader, Runs

TID, STACK, CUT_STACK = 7, 5, 6


class Stacks:
    """Native stacks of the preload library."""

    def frames(self, stack: int) -> tuple[Frame, ...]:
        if stack == CUT_STACK:
            return (*native(*WAIT, EVALUATION), CUT_WHEN_RECORDED)
        return native(*WAIT, EVALUATION, "libc.so.6:start_thread") if stack == STACK else ()


class Reader:
    """A reader that answers when the test sets an answer."""

    def __init__(self) -> None:
        self.asking, self.gave_up, self.took_s, self.note = False, False, 0.0, ""
        self.requests = 0
        self.ready: Mapping[int, Runs] | None = None
        self.runs: Mapping[int, int] = {}
        self.tids: Sequence[int] = ()

    def ask(self, tids: Sequence[int] = ()) -> None:
        self.tids = tids
        self.asking, self.requests = True, self.requests + 1

    def answer(self, timeout_s: float = 0.0) -> Any:
        if not self.asking:
            return None
        answer, self.ready = self.ready, None
        self.asking = answer is None
        return answer


def snapshot(stack: int = STACK, lock: str = "g_lock") -> Snapshot:
    """A snapshot with a thread in a wait, and in a deadlock with itself."""
    wait = Wait(1, Kind.SEM, 1.0, (), stack, 0, 1)
    thread = Thread(TID, "t", True, ThreadState.IDLE, wait, (), {}, 0.0, 0, 0)
    return Snapshot(
        taken_at="", host="", source="preload", duration_s=1.0, interval_s=1.0,
        process=Process(1, "", (), "", ""), threads=(thread,),
        locks=(records.lock(1, lock, Kind.SEM),),
        deadlocks=(Deadlock(True, 1.0, (DeadlockEdge(TID, 1, TID, stack, 0),)),),
        stacks={stack: Stacks().frames(stack)},
    )  # fmt: skip


def merged_snapshot(stacks: PythonStacks, native: Snapshot, waits: WaitKeys) -> Snapshot:
    """The snapshot with the Python functions that are known."""
    draft = native.draft()
    stacks.merge(draft, waits)
    return draft.snapshot()


def all_merged(stacks: PythonStacks, waits: WaitKeys, waits_after: WaitKeys) -> Snapshot:
    """A snapshot with all Python functions that can be read."""
    draft = snapshot().draft()
    stacks.merge_all(draft, waits, lambda: waits_after)
    return draft.snapshot()


class Scans:
    """Scans of a process with one waiting thread."""

    def __init__(self) -> None:
        self.reader = Reader()
        self.stacks = PythonStacks(cast(PythonReader, self.reader), Stacks().frames, pause_s=0.0)
        self.last = snapshot()

    def scan(self, seq: int | None, stack: int = STACK) -> list[str]:
        """Return the functions of the thread's stack."""
        waits = {} if seq is None else {TID: (1, seq)}
        self.stacks.begin(lambda: waits)
        self.last = merged_snapshot(self.stacks, snapshot(stack), waits)
        (thread,) = self.last.threads
        assert thread.waiting_for is not None
        assert self.last.deadlocks[0].cycle[0].stack == thread.waiting_for.stack
        frames = self.last.stacks[thread.waiting_for.stack]
        assert frames == self.stacks.frames(thread.waiting_for.stack)
        return [frame.function for frame in frames]


@pytest.fixture
def scans() -> Scans:
    """Scans after the first one."""
    made = Scans()
    made.scan(None)
    return made


NATIVE = [*WAIT, EVALUATION, "start_thread"]
PYTHON = ["get", "start_thread"]
ANSWER = {TID: runs("get")}


def test_a_lasting_wait_is_read_once_and_then_known(scans: Scans) -> None:
    assert scans.scan(1) == NATIVE
    assert scans.reader.requests == 0, "the wait might end at once"
    assert scans.scan(1) == NATIVE
    assert scans.reader.requests == 1
    scans.reader.ready = ANSWER
    for _ in range(3):
        assert scans.scan(1) == PYTHON
        (stack,) = set(scans.last.stacks) - {STACK}
        assert stack == FIRST_ID
    assert scans.reader.requests == 1
    assert document(scans.last)["stacks"][str(FIRST_ID)][0]["module"] == "python"


def test_the_first_scan_requests_all_waits_and_the_second_one_has_them() -> None:
    scans = Scans()
    assert scans.scan(1) == NATIVE
    assert scans.reader.requests == 1
    scans.reader.ready = ANSWER
    assert scans.scan(1) == PYTHON


def test_another_wait_has_other_functions(scans: Scans) -> None:
    scans.scan(1)
    scans.scan(1)
    scans.reader.ready = ANSWER
    assert scans.scan(2) == NATIVE, "the answer may belong to either wait"
    assert scans.scan(1) == NATIVE
    assert scans.scan(2) == NATIVE
    assert scans.scan(2) == NATIVE
    assert scans.reader.requests == 2
    scans.reader.ready = {TID: runs("put")}
    assert scans.scan(2) == ["put", "start_thread"]
    assert scans.scan(None) == NATIVE


def test_an_answer_that_comes_while_waits_are_read_is_too_new(scans: Scans) -> None:
    scans.scan(1)
    scans.scan(1)
    scans.stacks.begin(dict)
    scans.reader.ready = ANSWER
    merged_one = merged_snapshot(scans.stacks, snapshot(), {TID: (1, 1)})
    assert set(merged_one.stacks) == {STACK}
    assert scans.scan(1) == PYTHON, "the next scan may use it"


def test_brief_waits_of_a_nameless_lock_are_read_at_once(scans: Scans) -> None:
    nameless = "sem 0x55d000001040"

    def scan(seq: int, before: int) -> bool:
        """Whether a scan knows the Python functions of the wait."""
        scans.stacks.begin(lambda: {TID: (1, before)})
        scans.last = merged_snapshot(scans.stacks, snapshot(lock=nameless), {TID: (1, seq)})
        return FIRST_ID in scans.last.stacks

    assert not scan(1, 1)
    assert (scans.reader.requests, scans.stacks.wants_another_scan) == (0, True)
    scans.reader.ready = ANSWER
    assert not scan(3, 2), "the wait was over before the answer"
    assert not scans.stacks.learned
    scans.reader.ready = ANSWER
    assert scan(4, 4)
    assert (scans.reader.requests, scans.stacks.learned) == (2, True)
    for seq in range(5, 40):
        scans.reader.ready = {}
        assert not scan(seq, seq)
    assert scans.reader.requests == 16, "the number of requests is bounded"
    assert not scans.stacks.wants_another_scan


def test_brief_waits_of_a_named_lock_are_not_read(scans: Scans) -> None:
    for seq in range(5):
        scans.scan(seq)
    assert scans.reader.requests == 0


def test_a_stack_that_does_not_fit_is_not_requested_again(scans: Scans) -> None:
    scans.scan(1)
    scans.scan(1)
    scans.reader.ready = {TID: runs("a", "b")}
    for _ in range(3):
        assert scans.scan(1) == NATIVE
    assert scans.reader.requests == 1


def test_a_cut_stack_is_marked_after_the_merge(scans: Scans) -> None:
    scans.scan(1, CUT_STACK)
    scans.scan(1, CUT_STACK)
    scans.reader.ready = {TID: runs("a", "b")}
    assert scans.scan(1, CUT_STACK) == ["a", "b", CUT_WHEN_RECORDED.function]


def test_a_missed_thread_is_requested_again(scans: Scans) -> None:
    scans.scan(1)
    for _ in range(20):
        scans.scan(1)
        scans.reader.ready = {}
    assert scans.reader.requests == 8, "the number of requests is bounded"
    scans.scan(2)
    for answer in {}, ANSWER:
        scans.scan(2)
        scans.reader.ready = answer
    assert scans.scan(2) == PYTHON


def test_without_python_nothing_is_requested(scans: Scans) -> None:
    for _ in range(3):
        scans.scan(1, stack=CUT_STACK + 1)
    assert scans.reader.requests == 0


def test_a_single_scan_waits_for_the_answer(scans: Scans) -> None:
    scans.reader.ready = None
    stacks, waits = scans.stacks, {TID: (1, 1)}

    def answer(timeout_s: float = 0.0) -> Any:
        return ANSWER if scans.reader.asking else None

    scans.reader.answer = answer  # type: ignore[method-assign]
    assert FIRST_ID in all_merged(stacks, waits, waits).stacks
    other: dict[int, tuple[int, int]] = {TID: (1, 2)}
    assert FIRST_ID + 1 not in all_merged(stacks, other, waits).stacks


def test_an_answer_belongs_to_the_waits_of_its_request(scans: Scans) -> None:
    scans.scan(1)
    scans.scan(1)
    waits = {TID: (1, 2)}
    scans.reader.answer = lambda timeout_s=0.0: None  # type: ignore[method-assign, assignment]
    assert set(all_merged(scans.stacks, waits, waits).stacks) == {STACK}
    scans.reader.answer = lambda timeout_s=0.0: ANSWER  # type: ignore[method-assign, assignment]
    assert set(all_merged(scans.stacks, waits, waits).stacks) == {STACK}


# ---- samples of past waits ----


class SampledScans:
    """Scans of a process whose past waits are sampled: one thread waits, again and again."""

    def __init__(self) -> None:
        self.reader = Reader()
        self.read_samples = 0
        self.seq = 0
        self.stacks = PythonStacks(
            cast(PythonReader, self.reader), Stacks().frames, self._read_sample, pause_s=0.0
        )

    def _read_sample(self) -> dict[int, MetWait]:
        self.read_samples += 1
        return {TID: MetWait((1, self.seq), 1, STACK, TID + 1000, 9)}

    def scan(self, *, idle: bool = False) -> Snapshot:
        """Return a scan in which the thread is in a new wait."""
        self.seq += 1
        waits = {TID: (1, self.seq)}
        native = snapshot()
        lock = replace(native.locks[0], wait_stacks=(WaitStack(STACK, 9, 9.0),))
        draft = replace(native, locks=(lock,)).draft()
        last = replace(native, locks=(replace(lock, idle=idle),))
        self.stacks.begin(lambda: waits)
        self.stacks.merge(draft, waits, last)
        return draft.snapshot()


def functions_of_past(found: Snapshot) -> list[tuple[list[str], int]]:
    """Return the functions of each share, and its samples."""
    (waited,) = found.locks[0].wait_stacks
    return [
        ([frame.function for frame in found.stacks[share.stack]], share.samples)
        for share in waited.python
    ]


def test_a_short_wait_is_read_if_its_thread_slept_until_after_the_reading() -> None:
    scans = SampledScans()
    scans.scan()
    assert (scans.reader.requests, list(scans.reader.tids)) == (1, [TID + 1000])
    scans.reader.ready, scans.reader.runs = ANSWER, {TID + 1000: 9}
    assert functions_of_past(scans.scan()) == [(PYTHON, 1)], "though the wait is over"
    scans.reader.ready, scans.reader.runs = ANSWER, {TID + 1000: 10}
    assert functions_of_past(scans.scan()) == [(NATIVE, 1), (PYTHON, 1)]


def test_waits_for_a_lock_that_is_idle_are_not_sampled() -> None:
    scans = SampledScans()
    for _ in range(3):
        assert functions_of_past(scans.scan(idle=True)) == []
        scans.reader.ready = ANSWER
    assert scans.read_samples > 0
    assert not scans.reader.tids, "requests for present waits alone"


def test_after_the_first_samples_there_are_pauses() -> None:
    scans = SampledScans()
    for _ in range(60):
        scans.reader.ready, scans.reader.runs = ANSWER, {TID + 1000: 9}
        found = scans.scan()
    ((_, samples),) = functions_of_past(found)
    assert 30 <= samples <= scans.read_samples < 40


def test_a_nameless_interpreter_is_merged_once_its_names_are_read() -> None:
    stripped = native("python3.14:_PySemaphore_Wait", "python3.14:", "libc.so.6:start_thread")
    final: set[Frame] = set()
    reader, waits = Reader(), {TID: (1, 1)}
    stacks = PythonStacks(
        cast(PythonReader, reader), lambda _: stripped, pause_s=0.0, is_final=final.__contains__
    )
    unmerged = replace(snapshot(), stacks={STACK: stripped})

    def scanned() -> Snapshot:
        stacks.begin(lambda: waits)
        return merged_snapshot(stacks, unmerged, waits)

    assert scanned() == unmerged
    reader.ready = ANSWER
    assert scanned() == unmerged, "the names of the interpreter are not read yet"
    final.update(stripped)
    merged = scanned().stacks[FIRST_ID]
    assert [frame.function for frame in merged] == ["get", "start_thread"]
