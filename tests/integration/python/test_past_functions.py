"""The Python functions of past waits, against the waits that the program itself measured."""

from __future__ import annotations

import json
import time
from collections import Counter
from contextlib import closing

import pytest
from support import tool
from support.pythons import PYTHON, PYTHONS, need_mutexes, need_semaphores
from support.targets import PATIENCE_S, StartTarget, Target, source_of

from locktop.collector.model import Lock, Snapshot
from locktop.collector.render.profiles.call_tree import WAIT, Node
from locktop.collector.render.profiles.profile import SnapshotProfile
from locktop.collector.sources.attach import attach
from locktop.collector.sources.launch import preload_environment

#: Samples with functions that a test waits for.
_ENOUGH = 80


def functions(snapshot: Snapshot, stack: int) -> list[str]:
    """Return the Python functions of a stack, the innermost first."""
    return [frame.function for frame in snapshot.stacks[stack] if frame.module == "python"]


def samples_of(snapshot: Snapshot, lock: Lock) -> Counter[str]:
    """Return the samples of each innermost Python function; "" for those that were not read."""
    found: Counter[str] = Counter()
    for waited in lock.wait_stacks:
        for share in waited.python:
            found[(functions(snapshot, share.stack) or [""])[0]] += share.samples
    return found


def sampled(pid: int, enough: int = _ENOUGH) -> tuple[Snapshot, Lock]:
    """Scan until so many samples have functions; return the snapshot and its most awaited lock."""
    deadline = time.monotonic() + 4 * PATIENCE_S
    with closing(attach(pid)) as source:
        while True:
            assert time.monotonic() < deadline
            time.sleep(0.1)  # leaves the CPU to the target and to the reader of Python's frames
            snapshot = source.scan()
            lock = max(snapshot.locks, key=lambda one: one.wait_s)
            found = samples_of(snapshot, lock)
            if found.total() - found[""] >= enough:
                return source.scan(resolve=True), lock


def is_basis(note: str) -> bool:
    """Return whether a note tells on how many waits an estimate rests."""
    return note.startswith("Python functions: an estimate from ")


def find(node: Node, name: str) -> list[Node]:
    """Return the outermost nodes of a function below a node."""
    if node.step.name == name:
        return [node]
    return [found for child in node.children for found in find(child, name)]


@pytest.mark.parametrize("python", PYTHONS)
def test_the_callers_of_past_waits_are_the_functions_with_their_shares(python: str) -> None:
    need_semaphores(python)  # else each wait has a lock of its own
    command = [python, str(source_of("python_functions_share_a_lock"))]
    with Target(command, preload_environment(None)) as target:
        target.expect("ready")
        snapshot, _ = sampled(target.pid)
        target.go_on()
        truth = target.truth()
    lock = max(snapshot.locks, key=lambda one: one.wait_s)
    found = samples_of(snapshot, lock)
    share = found["price_order"] / (found["price_order"] + found["refund_order"])
    true_share = truth["price_order"] / (truth["price_order"] + truth["refund_order"])
    assert abs(share - true_share) < 0.2, (found, truth)

    profile = SnapshotProfile(snapshot)
    tree = profile.tree(WAIT)
    whole = sum(one.counted_wait_s for one in snapshot.locks)
    assert tree.value == pytest.approx(whole, rel=0.01), "the sum of all waits is exact"
    prices, refunds = find(tree, "price_order"), find(tree, "refund_order")
    assert prices
    assert refunds
    assert all(node.estimate for node in (*prices, *refunds))
    assert not any(node.estimate for node in tree.children), "the entry of a thread is counted"
    assert any(
        note.startswith("Python functions: an estimate from") for note in profile.notes(WAIT)
    )
    assert not any("an estimate" in note for note in profile.notes("count"))

    for waited in lock.wait_stacks:
        of_stack = [functions(snapshot, share.stack) for share in waited.python]
        through_c = {"audit" in names for names in of_stack if names}
        assert len(through_c) <= 1, "a native stack has functions of its own threads alone"
        for names in of_stack:
            assert ("audit_order" in names) == ("audit" in names)


@pytest.mark.parametrize("python", PYTHONS)
def test_past_waits_for_a_mutex_of_python_have_functions(python: str) -> None:
    """Each thread waits at a semaphore of its own: the samples of all of them count."""
    need_mutexes(python)
    command = [python, str(source_of("python_functions_share_a_lock"))]
    with Target(command, preload_environment(None)) as target:
        target.expect("ready")
        found: Counter[str] = Counter()
        deadline = time.monotonic() + 4 * PATIENCE_S
        with closing(attach(target.pid)) as source:
            while found.total() - found[""] < _ENOUGH:
                assert time.monotonic() < deadline, found
                time.sleep(0.1)  # leaves the CPU to the target and to the reader
                snapshot = source.scan()
                found = sum((samples_of(snapshot, lock) for lock in snapshot.locks), Counter())
        target.go_on()
        truth = target.truth()
    share = found["price_order"] / (found["price_order"] + found["refund_order"])
    true_share = truth["price_order"] / (truth["price_order"] + truth["refund_order"])
    assert abs(share - true_share) < 0.2, (found, truth)


def test_the_command_shows_functions_and_says_that_they_are_an_estimate() -> None:
    need_semaphores(PYTHON)
    command = [PYTHON, str(source_of("python_functions_share_a_lock"))]
    with Target(command, preload_environment(None)) as target:
        target.expect("ready")
        deadline = time.monotonic() + 4 * PATIENCE_S
        while True:  # on a busy machine the first readings may be too slow
            found = json.loads(tool.run("callers", "-p", target.pid, "--format", "json").stdout)
            names = {node["function"] for node in found["nodes"] if node["estimate"]}
            if "price_order" in names:
                break
            assert time.monotonic() < deadline, found
        assert found["estimate"] is False, "whole stacks are known"
        assert any(map(is_basis, found["notes"]))


def test_the_waits_of_a_program_without_python_are_never_divided(start_target: StartTarget) -> None:
    target = start_target("hold_100ms", "1")
    target.truth()
    with closing(attach(target.pid)) as source:
        for _ in range(3):
            snapshot = source.scan(resolve=True)
    (lock,) = [lock for lock in snapshot.locks if lock.name == "g_slow_lock"]
    assert lock.wait_s > 0
    assert not [waited for waited in lock.wait_stacks if waited.python]
    assert not any("Python" in note for note in SnapshotProfile(snapshot).notes(WAIT))
