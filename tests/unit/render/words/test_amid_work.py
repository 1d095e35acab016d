"""Which waits are amid work: deep in the program, and known by their kind alone."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders import records

from locktop.collector.model import Frame, Kind, Snapshot, ThreadState
from locktop.collector.render.words import amid_work

OWN = Frame(0x10, "app::step", None, None, "app", 0x10)
LIBC = Frame(0x20, "start_thread", None, None, "libc.so.6", 0x20)
PYTHON = Frame(0x30, "_PyEval_Vector", None, None, "libpython3.11.so.1.0", 0x30)
DEEP = (OWN,) * amid_work.MIN_FUNCTIONS


def snapshot_of(
    *stack: Frame, why: str = "condition", idle: bool = True, kind: Kind = Kind.COND
) -> Snapshot:
    wait = replace(records.wait(1, kind, 2.0), stack=7, idle=idle)
    thread = records.thread(11, "session", ThreadState.IDLE, waiting_for=wait)
    return replace(records.snapshot((thread,), ()), stacks={7: stack}, why={11: why})


def test_a_wait_deep_in_the_program_is_amid_work() -> None:
    (found,) = amid_work.waiters(snapshot_of(*DEEP, LIBC))
    assert found.tid == 11


@pytest.mark.parametrize("stack", [(), DEEP[1:], (*DEEP[1:], LIBC), (*DEEP[1:], PYTHON, PYTHON)])
def test_functions_of_libraries_and_interpreters_do_not_count(stack: tuple[Frame, ...]) -> None:
    assert amid_work.waiters(snapshot_of(*stack)) == []


def test_a_wait_that_a_rule_knows_is_what_the_rule_says() -> None:
    assert amid_work.waiters(snapshot_of(*DEEP, why="pool")) == []
    assert amid_work.waiters(snapshot_of(*DEEP, idle=False)) == []


def test_a_wait_for_threads_is_for_what_its_kind_says() -> None:
    assert amid_work.waiters(snapshot_of(*DEEP, why="semaphore", kind=Kind.SEM))
    assert amid_work.waiters(snapshot_of(*DEEP, why="barrier", kind=Kind.BARRIER)) == []
    assert amid_work.waiters(snapshot_of(*DEEP, why="join", kind=Kind.JOIN)) == []
