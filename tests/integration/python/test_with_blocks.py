"""The holders of Python's locks in a sampled process, and threads that only look like one.

docs/sampling.md has a table of what is known in each version; it is checked here.
"""

from __future__ import annotations

import re
import time
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace
from support.pythons import PYTHON, all_pythons, has_mutexes, version
from support.targets import PATIENCE_S, Target, source_of

from locktop.collector.linux.threads import KernelThreads
from locktop.collector.model import Contents, HolderEvidence, Snapshot
from locktop.collector.sources.attach import attach
from locktop.collector.sources.probes import python_holders
from locktop.collector.sources.probes.python_holders import PythonHolders
from locktop.collector.sources.probes.python_lock_reader import PythonLockReader

PYTHONS = all_pythons()
PAGE = Path(__file__).parents[3] / "docs" / "sampling.md"
_DISTANCE = 48  # bytes between two semaphores that malloc() gave
#: The ways whose lock has its owner.
EXACT = {"owned", "owned_twice", "owned_by_acquire"}

Holders = dict[str, tuple[list[int], list[int]]]


def holders(snapshot: Snapshot, ways: dict[int, str]) -> Holders:
    """Return by way the exact and the probable holders of the lock that the thread waits for."""
    locks = {lock.id: lock for lock in snapshot.locks}
    result = {}
    for thread in snapshot.threads:
        if thread.tid in ways and thread.waiting_for is not None:
            lock = locks[thread.waiting_for.lock]
            assert all(holder.evidence is HolderEvidence.PYTHON for holder in lock.holders_probable)
            probable = [holder.tid for holder in lock.holders_probable]
            result[ways[thread.tid]] = list(thread.waiting_for.holders), probable
    return result


def expected(truth: dict[int, tuple[str, list[int]]]) -> Holders:
    return {way: (tids, []) if way in EXACT else ([], tids) for way, tids in truth.values()}


@pytest.mark.parametrize("python", PYTHONS)
def test_a_thread_in_a_block_is_named_and_one_that_left_it_is_not(python: str) -> None:
    with Target([python, str(source_of("python_with_blocks"))]) as target:
        truth = {int(tid): (way, tids) for tid, (way, tids) in target.truth().items()}
        ways = {tid: way for tid, (way, _) in truth.items()}
        right = expected(truth)
        deadline = time.monotonic() + PATIENCE_S
        with closing(attach(target.pid)) as source:
            while True:
                result = holders(source.scan(resolve=True), ways)
                wrong = {
                    way: pair for way, pair in result.items()
                    if pair not in (right[way], ([], []))
                }  # fmt: skip
                assert not wrong, "no scan may name a wrong holder"
                if result == right:
                    break
                assert time.monotonic() < deadline, result
                time.sleep(0.02)  # leaves the CPU to the reader of Python's frames


def test_the_holder_of_a_crowd_is_read_before_its_waiters(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scan reads some threads, and of a thousand nearly all wait."""
    monkeypatch.setattr(python_holders, "FULL_SCAN_S", 0.0)
    with Target([PYTHON, str(source_of("python_crowd_at_a_lock"))]) as target:
        holder = target.truth()["holder"]
        with closing(attach(target.pid)) as source:
            snapshot = source.scan(resolve=True)
    locks = [lock for lock in snapshot.locks if not lock.idle]
    # Each waiter for a PyMutex sleeps at a semaphore of its own.
    assert len(locks) == 1 or has_mutexes(PYTHON)
    assert {probable.tid for lock in locks for probable in lock.holders_probable} == {holder}


def test_the_table_has_each_version() -> None:
    rows = re.findall(r"^\| CPython (3\.\d+)(?: to (3\.\d+))? \|", PAGE.read_text(), re.M)
    versions = {
        minor
        for first, last in rows
        for minor in range(int(first[2:]), int((last or first)[2:]) + 1)
    }
    assert {version(python)[1] for python in PYTHONS} <= versions


def test_a_thread_that_has_left_the_wait_of_the_scan_is_no_holder() -> None:
    """A scan reads waits before blocks. A thread that got a lock between them holds it later."""
    with Target([PYTHON, str(source_of("python_with_blocks"))]) as target:
        truth = {way: (int(tid), tids) for tid, (way, tids) in target.truth().items()}
        waiter, (holder,) = truth["block"]
        deadline = time.monotonic() + PATIENCE_S
        with closing(attach(target.pid)) as source:
            while not probable_of(snapshot := source.scan(resolve=True), waiter):
                assert time.monotonic() < deadline
        threads = {thread.tid: thread for thread in snapshot.threads}
        wait = threads[waiter].waiting_for
        own = threads[holder].waiting_for
        assert own is not None
        for former, moved_by, expected_holders in (
            (own, 0, [holder]), (own, _DISTANCE, []), (wait, 0, []),
        ):  # fmt: skip
            draft = snapshot.draft()
            draft.locks = tuple(
                replace(
                    lock,
                    holders_probable=(),
                    address=lock.address - (moved_by if lock.id == own.lock else 0),
                )
                for lock in draft.locks
            )
            draft.threads = tuple(
                replace(thread, waiting_for=former) if thread.tid == holder else thread
                for thread in draft.threads
            )
            tasks = KernelThreads(target.pid, target.pid)
            with closing(tasks):
                probe = PythonHolders(target.pid, tasks, PythonLockReader(target.pid))
                probe.annotate(draft, is_full=True)
            assert probable_of(draft, waiter) == expected_holders


def probable_of(snapshot: Contents, waiter: int) -> list[int]:
    """Return the probable holders of the lock that a thread waits for."""
    (wait,) = [thread.waiting_for for thread in snapshot.threads if thread.tid == waiter]
    locks = {lock.id: lock for lock in snapshot.locks}
    return [each.tid for each in locks[wait.lock].holders_probable] if wait is not None else []
