"""Waits for locks that a thread of the parent held at the fork."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace
from unit.builders import records
from unit.builders.waits import wait

from locktop.collector.linux import procfs
from locktop.collector.model import Kind, Lock, Misuse, MisuseKind, Thread, ThreadState, Wait
from locktop.collector.sources.preload.fork_inherited import held_at_fork, owners_left_by_fork

TID = 11
LOCK = records.lock(1, "a")


@pytest.fixture(scope="module")
def child() -> Iterator[int]:
    """The pid of a child of this process."""
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process.pid
        process.kill()


def waits(**fields: object) -> Wait:
    """Return a wait for a mutex whose owner is the first thread of this process."""
    return replace(wait(duration_s=2.0), **{"holder_seen": os.getpid(), "stack": 7} | fields)


def found(
    child: int,
    of: Wait | None,
    *others: Thread,
    lock: Lock | None = LOCK,
    forked_from: int | None = None,
) -> tuple[Misuse, ...]:
    threads = (replace(thread(TID), waiting_for=of), *others)
    locks = {lock.id: lock} if lock is not None else {}
    return held_at_fork(child, os.getpid() if forked_from is None else forked_from, threads, locks)


def thread(tid: int, alive: bool = True) -> Thread:
    return replace(records.thread(tid, "t", ThreadState.OTHER), alive=alive)


def test_a_wait_for_a_thread_of_the_parent_is_a_misuse(child: int) -> None:
    (misuse,) = found(child, waits())
    assert (misuse.kind, misuse.lock, misuse.tid) == (MisuseKind.HELD_AT_FORK, 1, TID)
    assert (misuse.other, misuse.stack, misuse.count) == (os.getpid(), 7, 1)
    assert misuse.ago_s == 2.0
    assert found(child, waits(kind=Kind.RWLOCK))


def test_every_thread_that_waits_so_is_a_misuse(child: int) -> None:
    runs = thread(12)
    other = replace(thread(13), waiting_for=waits())
    assert [one.tid for one in found(child, waits(), runs, other)] == [TID, 13]
    assert [one.tid for one in found(child, None, runs, other)] == [13]


@pytest.mark.parametrize(
    "fields",
    [{"kind": Kind.SEM}, {"pshared": True}, {"duration_s": 0.09}, {"holder_seen": 0}],
    ids=str,
)
def test_other_waits_are_no_misuse(child: int, fields: dict[str, object]) -> None:
    assert found(child, waits(**fields)) == ()


def test_a_wait_counts_as_soon_as_a_new_owner_would_be_visible(child: int) -> None:
    assert found(child, waits(duration_s=0.1))


def test_a_lock_that_may_have_been_released_is_no_misuse(child: int) -> None:
    assert found(child, waits(), lock=replace(LOCK, foreign_releases=True)) == ()
    assert found(child, waits(), lock=None) == ()


def test_an_owner_among_the_childs_own_threads_is_no_misuse(child: int) -> None:
    assert found(child, waits(), thread(os.getpid())) == ()
    assert found(child, waits(), thread(os.getpid(), alive=False))


def test_only_a_child_that_executed_no_program_inherits_locks(child: int) -> None:
    assert found(child, waits(), forked_from=0) == ()


def test_a_thread_of_another_process_did_not_hold_the_lock_at_the_fork(child: int) -> None:
    assert found(child, waits(holder_seen=child)) == ()
    assert found(child, waits(), forked_from=1) == ()
    assert found(1 << 30, waits()) == ()


def left(child: int, *of: Thread, forked_from: int | None = None, known: int = 0) -> set[int]:
    parent = os.getpid() if forked_from is None else forked_from
    return set(owners_left_by_fork(child, parent, of, {known}))


def test_owners_that_live_in_the_parent_since_before_the_fork_are_left_behind(child: int) -> None:
    waiter = replace(thread(TID), waiting_for=waits())
    assert left(child, waiter, thread(12)) == {os.getpid()}
    assert left(child, thread(12)) == set()
    assert left(child, waiter, forked_from=0) == left(child, waiter, forked_from=1) == set()
    assert left(child, waiter, thread(os.getpid())) == set(), "a thread of the child"
    assert left(child, replace(waiter, waiting_for=waits(holder_seen=0))) == set()
    assert left(child, replace(waiter, waiting_for=waits(kind=Kind.SEM))) == set()


def test_a_thread_that_the_parent_created_after_the_fork_owned_nothing_then(child: int) -> None:
    started = procfs.stat(child).start_time
    while True:
        with ThreadPoolExecutor(1) as pool:
            tid = pool.submit(threading.get_native_id).result()
            waiter = replace(thread(TID), waiting_for=waits(holder_seen=tid))
            if procfs.thread_stat(os.getpid(), tid).start_time > started:
                assert left(child, waiter) == set()
                break


def test_an_owner_that_was_left_behind_stays_so_after_its_end(child: int) -> None:
    waiter = replace(thread(TID), waiting_for=waits(holder_seen=1 << 30))
    assert left(child, waiter) == set()
    assert left(child, waiter, known=1 << 30) == {1 << 30}
