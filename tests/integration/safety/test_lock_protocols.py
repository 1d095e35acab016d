"""Robust, priority, shared and fair locks keep their own rules under the library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import tool
from support.comparison import CompareWithUnprepared
from support.targets import StartTarget, Target

KINDS = {"mutex", "rwlock", "cond", "barrier", "sem"}


@pytest.mark.parametrize("name", ["robust_owner_dies_with_waiters", "wake_order"])
def test_robust_and_fair_locks_have_the_same_results(
    name: str, compare_with_unprepared: CompareWithUnprepared
) -> None:
    compare_with_unprepared(name)


def test_priority_protocols_have_the_same_results(
    compare_with_unprepared: CompareWithUnprepared, start_unprepared: StartTarget
) -> None:
    if start_unprepared("mutex_priority_protocols").finish() == (0, ["not permitted"]):
        pytest.skip("real-time priorities are not permitted here")
    compare_with_unprepared("mutex_priority_protocols")


def run_both(first: Target, second: Target) -> None:
    first.go_on()
    for side in (first, second):
        side.expect("ok")


def start_both(start: StartTarget, directory: Path) -> tuple[Target, Target]:
    memory = directory / "memory"
    memory.touch()
    first = start("process_shared_locks", str(memory), "first")
    first.expect("held")
    second = start("process_shared_locks", str(memory), "second")
    second.expect("waiting")
    return first, second


def test_locks_shared_by_two_processes_work_without_the_library(
    start_unprepared: StartTarget, tmp_path: Path
) -> None:
    run_both(*start_both(start_unprepared, tmp_path))


def of_kind(document: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return the lock of that kind; of two mutexes the one with more users."""
    found = [lock for lock in document["locks"] if lock["kind"] == kind]
    assert found, kind
    most: dict[str, Any] = max(found, key=lambda lock: (len(lock["waiters"]), lock["acquisitions"]))
    return most


def test_locks_shared_by_two_processes_have_figures_in_both(
    start_target: StartTarget, tmp_path: Path
) -> None:
    first, second = start_both(start_target, tmp_path)

    def all_wait(document: dict[str, Any]) -> bool:
        return {lock["kind"] for lock in document["locks"] if lock["waiters"]} >= KINDS

    theirs = tool.scan_until(second.pid, all_wait, "a waiter for each lock")
    ours = tool.snapshot(first.pid)
    for kind in ("mutex", "rwlock"):
        lock = of_kind(ours, kind)
        holders, waiters = lock["holders"], lock["waiters"]
        assert (holders, waiters) == ([first.pid], []), "the waiters of the other process"
        lock = of_kind(theirs, kind)
        assert len(lock["waiters"]) == 1
        own = {thread["tid"] for thread in theirs["threads"]}
        assert not own & set(lock["holders"]), "no thread of this process holds the lock"
        assert set(lock["holders"]) <= {first.pid}
    assert ours["deadlocks"] == theirs["deadlocks"] == []
    run_both(first, second)
    for side in (first, second):
        document = tool.snapshot(side.pid)
        assert of_kind(document, "mutex")["acquisitions"] == 20_000 + 1
        for lock in document["locks"]:
            assert (lock["holders"], lock["waiters"]) == ([], []), lock
