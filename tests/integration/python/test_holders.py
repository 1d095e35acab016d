"""The holder of a Python lock and its activity, against the program's own answer."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support import tool
from support.pythons import PYTHON, need_semaphores
from support.screen import Screen
from support.targets import PATIENCE_S, Target, source_of

from locktop.collector.model import ActivityState, Frame, Lock, Snapshot
from locktop.collector.model.frames import PYTHON_NOT_READ
from locktop.collector.render.text import report
from locktop.collector.sources.attach import attach
from locktop.collector.sources.base import Source
from locktop.collector.sources.launch import preload_environment

StartHands = Callable[..., Target]


@pytest.fixture
def start_hands() -> Iterator[StartHands]:
    """Starts tests/targets/languages/python_locks_change_hands.py."""
    started: list[Target] = []

    def start(way: str, prepared: bool = True) -> Target:
        need_semaphores(PYTHON)
        command = [PYTHON, str(source_of("python_locks_change_hands")), way]
        started.append(Target(command, preload_environment(None) if prepared else None))
        return started[-1]

    yield start
    for target in started:
        target.stop()


def waited_for(seen: Snapshot) -> list[Lock]:
    """Return the program's own locks with waiters, without those of joins."""
    waited = [lock for lock in seen.locks if lock.waiters and "<module>" not in lock.name]
    ours = ("python_locks_change_hands.py", "libffi")
    return [lock for lock in waited if any(name in lock.name for name in ours)]


def until(source: Source, wanted: Callable[[Snapshot], bool], resolve: bool = False) -> Snapshot:
    deadline = time.monotonic() + PATIENCE_S
    while not wanted(seen := source.scan(resolve)):
        assert time.monotonic() < deadline, waited_for(seen)
        time.sleep(0.02)  # leaves the CPU to the reader of Python's frames
    return seen


def holder_functions(seen: Snapshot) -> list[str]:
    """Return the Python functions of the first holder."""
    now = waited_for(seen)[0].holder_activity if waited_for(seen) else None
    stack = seen.stacks.get(now.stack, ()) if now else ()
    return [frame.function for frame in stack if frame.module == "python"]


def test_each_next_holder_is_known_with_its_activity(start_hands: StartHands) -> None:
    target = start_hands("hands")
    tid = int(target.line())  # the library is loaded
    with closing(attach(target.pid)) as source:
        for others in (2, 1):

            def is_known(seen: Snapshot, tid: int = tid, others: int = others) -> bool:
                locks = [lock for lock in waited_for(seen) if len(lock.waiters) == others]
                is_holder = bool(locks) and locks[0].holders == (tid,)
                return is_holder and bool(holder_functions(seen))

            seen = until(source, is_known, resolve=True)
            (lock,) = waited_for(seen)
            now = lock.holder_activity
            assert now is not None
            assert (now.tid, now.doing, now.call) == (tid, ActivityState.BLOCKED, "read")
            assert holder_functions(seen)[:3] == ["keeps", "hands", "run"]
            waits = [thread.waiting_for for thread in seen.threads if thread.tid in lock.waiters]
            assert [wait.holders for wait in waits if wait] == [(tid,)] * others
            page = " ".join(report.render(seen).split())
            assert f"held by thread {tid} (" in page
            target.go_on()
            tid = int(target.line())


@pytest.mark.parametrize(("way", "prepared"), [("hands", True), ("mutex", True), ("mutex", False)])
def test_the_functions_of_the_holder_appear_in_later_scans_without_a_request(
    way: str, prepared: bool, start_hands: StartHands
) -> None:
    target = start_hands(way, prepared)
    tid = int(target.line())
    with closing(attach(target.pid)) as source:
        seen = until(source, lambda seen: holder_functions(seen)[:2] == ["keeps", "hands"])
    assert waited_for(seen)[0].holders == (tid,)


def test_one_snapshot_has_the_holder_and_its_functions(start_hands: StartHands) -> None:
    target = start_hands("hands")
    tid = int(target.line())

    def holders(document: dict[str, Any]) -> tuple[list[int], list[str]]:
        for lock in document["locks"]:
            if len(lock["waiters"]) == 2 and lock["holder_now"]:
                return lock["holders"], tool.functions(document, lock["holder_now"]["stack"])
        return [], []

    def is_known(document: dict[str, Any]) -> bool:
        return "keeps" in holders(document)[1]

    found, functions = holders(tool.scan_until(target.pid, is_known, "the holder's functions"))
    assert found == [tid]
    assert functions[functions.index("keeps") + 1] == "hands"


def test_a_brief_holder_shows_no_functions_of_the_interpreter(start_hands: StartHands) -> None:
    target = start_hands("brief")
    target.line()

    def holder_stacks(seen: Snapshot) -> list[tuple[Frame, ...]]:
        activities = [lock.holder_activity for lock in seen.locks]
        return [seen.stacks.get(now.stack, ()) for now in activities if now is not None]

    with closing(attach(target.pid)) as source:
        seen = until(
            source, lambda seen: any(PYTHON_NOT_READ in frames for frames in holder_stacks(seen)),
            resolve=True,
        )  # fmt: skip
    for frames in holder_stacks(seen):
        assert not any(frame.function.startswith("_PyEval_EvalFrame") for frame in frames)


def test_a_deadlock_of_two_python_locks_is_found(start_hands: StartHands) -> None:
    target = start_hands("crossed")
    tids = {int(target.line()), int(target.line())}
    with closing(attach(target.pid)) as source:
        seen = until(source, lambda seen: len(waited_for(seen)) == 2, resolve=True)
        seen = until(source, lambda seen: bool(seen.deadlocks), resolve=True)
    for lock in waited_for(seen):
        assert set(lock.holders) | set(lock.waiters) == tids
        assert not lock.idle
    (found,) = seen.deadlocks
    edges = {(edge.tid, edge.waits_for, edge.held_by) for edge in found.cycle}
    assert edges == {(lock.waiters[0], lock.id, lock.holders[0]) for lock in waited_for(seen)}


def test_a_lock_that_another_thread_released_has_no_holder(start_hands: StartHands) -> None:
    target = start_hands("given")
    tid = int(target.line())
    with closing(attach(target.pid)) as source:
        seen = until(
            source, lambda seen: [len(lock.waiters) for lock in waited_for(seen)] == [2],
            resolve=True,
        )  # fmt: skip
    assert waited_for(seen)[0].holders == ()
    assert not any(held.lock == waited_for(seen)[0].id for thread in seen.threads
                   for held in thread.holds if thread.tid == tid)  # fmt: skip


def named(pid: int, tid: str) -> str:
    """Return how the screen may begin the name of a thread: by that which Python gave it."""
    thread = tool.thread_of(tool.snapshot(pid), int(tid))
    return re.escape(str(thread["name"])[:6])


def test_the_screen_of_the_code_inside_names_the_holder_of_a_semaphore(
    start_hands: StartHands, need: Callable[..., Path]
) -> None:
    """A semaphore has no samples; that says nothing about its holder."""
    target = start_hands("hands")
    tid = target.line()
    with Screen(need("tmux"), "-p", target.pid, width=120, height=30) as screen:
        name = named(target.pid, tid)
        screen.until(lambda text: re.search(rf"^\*.*{name}", text, re.M) is not None, "the holder")
        screen.press("I")
        words = screen.until(lambda text: "nobody records who holds a" in text, "the reason")
        assert re.search(rf"{name}.* has it now", " ".join(words.split()))
        assert "nobody held" not in words
        screen.press("q")
