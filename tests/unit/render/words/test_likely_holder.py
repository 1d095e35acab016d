"""The likely holder of a lock, and the scans that name none."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from unit.builders import blocking, records

from locktop.collector.model import (
    ActivityState,
    Kind,
    RootKind,
    Snapshot,
    ThreadActivity,
    ThreadElsewhere,
    ThreadState,
)
from locktop.collector.render.text.report import render
from locktop.collector.render.words import likely_holder
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.views.blocking import now_span


def likely(snapshot: Snapshot) -> int:
    awake = likely_holder.find_only_awake(snapshot)
    thread = likely_holder.find(snapshot, snapshot.locks[0], awake)
    return thread.tid if thread is not None else 0


def with_mutexes(snapshot: Snapshot) -> Snapshot:
    locks = tuple(replace(lock, kind=Kind.MUTEX) for lock in snapshot.locks)
    return replace(snapshot, locks=locks)


def with_pshared(snapshot: Snapshot) -> Snapshot:
    threads = tuple(
        replace(thread, waiting_for=replace(wait, pshared=True)) if wait is not None else thread
        for thread in snapshot.threads
        for wait in (thread.waiting_for,)
    )
    return replace(snapshot, threads=threads)


def with_thread(snapshot: Snapshot, state: ThreadState, **fields: object) -> Snapshot:
    thread = replace(records.thread(900, "other", state), **fields)
    return replace(snapshot, threads=(*snapshot.threads, thread))


def with_call(snapshot: Snapshot, call: str) -> Snapshot:
    """The snapshot in which the only thread that did not wait is in a system call by now."""
    now = ThreadActivity(blocking.HOLDER, ActivityState.BLOCKED, call=call)
    threads = tuple(
        replace(thread, now=now) if thread.tid == blocking.HOLDER else thread
        for thread in snapshot.threads
    )
    return replace(snapshot, threads=threads)


def test_the_only_thread_that_does_not_wait_is_likely() -> None:
    snapshot = blocking.writers(3)
    assert likely(snapshot) == blocking.HOLDER
    index = SnapshotIndex(snapshot)
    words, _ = now_span(index, index.blocking.roots[0])
    assert words == "holder not known; the only thread that does not wait: leader"


def test_the_text_report_names_it_beside_its_waiters() -> None:
    """The report named only exact and probable holders there."""
    text = " ".join(render(blocking.writers(3)).split())
    assert "one lock each, holder not known; the only thread that does not wait: thread 100" in text


@pytest.mark.parametrize(
    "change",
    [
        lambda s: with_thread(s, ThreadState.RUNNING),
        lambda s: with_thread(s, ThreadState.IDLE),  # in poll(), perhaps with the lock
        lambda s: replace(s, threads=s.threads[1:]),
        lambda s: replace(s, unobserved_waiters=(blocking.HOLDER,)),
        lambda s: with_call(s, "futex"),  # its wait began after the reading of the threads
        lambda s: replace(s, threads_elsewhere=(ThreadElsewhere(7, 7, "other"),)),
        with_pshared,
        lambda s: with_thread(
            s, ThreadState.WAITING, waiting_for=records.wait(90, Kind.MUTEX, 9.0, blocking.HOLDER)
        ),
        with_mutexes,  # these are free without a holder
    ],
)
def test_a_near_miss_names_nobody(change: Callable[[Snapshot], Snapshot]) -> None:
    snapshot = change(blocking.writers(3))
    assert likely(snapshot) == 0
    index = SnapshotIndex(snapshot)
    root = next(root for root in index.blocking.roots if root.kind is RootKind.LOCK)
    assert now_span(index, root)[0] == "its holder is not known"


@pytest.mark.parametrize(
    "change",
    [
        lambda s: with_thread(s, ThreadState.RUNNING, alive=False),
        lambda s: with_thread(s, ThreadState.IDLE, waiting_for=records.wait(90, Kind.JOIN, 9.0)),
        lambda s: with_call(s, "fdatasync"),
        lambda s: replace(with_mutexes(s), complete=False),
        lambda s: replace(with_mutexes(s), source="proc"),
    ],
)
def test_threads_that_cannot_hold_it_change_nothing(
    change: Callable[[Snapshot], Snapshot],
) -> None:
    assert likely(change(blocking.writers(3))) == blocking.HOLDER
