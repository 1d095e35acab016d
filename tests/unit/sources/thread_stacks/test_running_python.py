"""Python functions of threads that go on: both readings must have them."""

from __future__ import annotations

import pytest
from unit.builders.records import snapshot, thread

from locktop.collector.model import (
    ActivityState,
    Frame,
    Snapshot,
    ThreadActivity,
    ThreadState,
)
from locktop.collector.sources.thread_stacks import running_python
from locktop.collector.symbols.python.frame_reader import PythonFrame, Runs

PID, TID = 10, 11
EVALUATION = Frame(2, "_PyEval_EvalFrameDefault", None, None, "libpython3.11.so.1.0", 2)


class FakeReader:
    """Answers with the readings in their order; None is a reading that failed."""

    readings: list[dict[int, Runs] | None]
    gave_up = False

    def __init__(self, pid: int) -> None:
        assert pid == PID

    def ask(self) -> None:
        pass

    def answer(self, timeout_s: float) -> dict[int, Runs] | None:
        return self.readings.pop(0)

    def close(self) -> None:
        pass


def of_python(stack: int = 5) -> Snapshot:
    now = ThreadActivity(tid=TID, doing=ActivityState.RUNNING, stack=stack)
    member = thread(TID, "burns", ThreadState.RUNNING, now=now)
    return snapshot((member,), (), stacks={5: (EVALUATION,)})


def run(*functions: str) -> Runs:
    """Return one run, innermost first."""
    return (tuple(PythonFrame(name, "work.py", 3) for name in functions),)


def read(
    monkeypatch: pytest.MonkeyPatch, *readings: dict[int, Runs] | None, of: Snapshot | None = None
) -> dict[int, list[str]]:
    monkeypatch.setattr(FakeReader, "readings", list(readings), raising=False)
    monkeypatch.setattr(running_python, "PythonReader", FakeReader)
    stacks = running_python.read(of or of_python(), PID, {})
    return {tid: [frame.function for frame in frames] for tid, frames in stacks.items()}


@pytest.mark.parametrize("stack", [5, 0])
def test_functions_of_both_readings_are_the_stack(
    stack: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    same = {TID: run("burns", "run")}
    assert read(monkeypatch, same, same, of=of_python(stack)) == {TID: ["burns", "run"]}


def test_a_stack_that_changed_is_cut_at_its_inner_end(monkeypatch: pytest.MonkeyPatch) -> None:
    stacks = read(
        monkeypatch, {TID: run("left", "burns", "run")}, {TID: run("right", "burns", "run")}
    )
    assert stacks == {TID: [running_python.WENT_ON.function, "burns", "run"]}


def test_a_stack_that_grew_is_cut_too(monkeypatch: pytest.MonkeyPatch) -> None:
    stacks = read(monkeypatch, {TID: run("burns", "run")}, {TID: run("deep", "burns", "run")})
    assert stacks == {TID: [running_python.WENT_ON.function, "burns", "run"]}


def test_readings_without_a_common_function_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    other = {TID: run("left")}, {TID: run("right")}
    assert not read(monkeypatch, *other, *other)
    assert not read(monkeypatch, {}, {}, {}, {TID: run("right")})


def test_a_reading_that_failed_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    same = {TID: run("burns")}
    assert read(monkeypatch, None, same, {}, same) == {TID: ["burns"]}
    assert not read(monkeypatch, same, None, None, None)


def test_a_process_without_python_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    of = snapshot((thread(TID, "runs", ThreadState.RUNNING),), ())
    assert not read(monkeypatch, of=of)
