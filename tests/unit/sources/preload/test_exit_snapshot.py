"""The last snapshot of a process that has ended."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace
from support.shared_file import SharedFile, key
from unit.builders import scenarios
from unit.builders.raw_threads import (
    NOW,
    SECOND,
    held_record,
    raw_thread,
    reading,
    wait_block,
)

from locktop.collector.model import LockRates
from locktop.collector.native import lib
from locktop.collector.shm.event_ring import FlightRecorder, RawEvent, RawMark
from locktop.collector.shm.segment import SharedMemory
from locktop.collector.sources.preload import exit_snapshot

MUTEX = key(lib.LT_KIND_MUTEX, 0x1000)


@pytest.fixture
def recorder(tmp_path: Path) -> FlightRecorder:
    """A flight recorder without records."""
    path = SharedFile().save(tmp_path)
    return FlightRecorder(SharedMemory(os.open(path, os.O_RDONLY), str(path)))


def event(start: int, wait: int, hold: int) -> RawEvent:
    return RawEvent(1, 1, 11, 1, 0, 0, start, wait, hold, 0)


def test_threads_of_the_first_scan_have_the_names_in_their_blocks() -> None:
    found = exit_snapshot.last_tasks(reading(raw_thread(11, name=b"worker\0\0")), None)
    assert {tid: (task.name, task.state) for tid, task in found.items()} == {11: ("worker", "")}


def test_only_threads_that_lived_at_the_last_scan_lived_to_the_end() -> None:
    last = scenarios.normal()
    first, second = last.threads[:2]
    last = replace(last, threads=(first, replace(second, alive=False)))
    new = max(first.tid, second.tid) + 1
    now = reading(
        raw_thread(first.tid),
        raw_thread(second.tid),
        raw_thread(new),
        raw_thread(new + 1, state=lib.LT_THREAD_KEPT),
    )
    found = exit_snapshot.last_tasks(now, last)
    assert found.keys() == {first.tid, new}
    assert (found[first.tid].name, found[first.tid].cpu_s) == (first.name, first.cpu_s)


def test_the_latest_sign_of_life_counts(recorder: FlightRecorder) -> None:
    start = {"clock0_ticks": 1 * SECOND}
    assert exit_snapshot.last_sign_of_life(reading(**start), recorder, 0) == 1 * SECOND
    assert exit_snapshot.last_sign_of_life(reading(**start), recorder, 3 * SECOND) == 3 * SECOND
    held = raw_thread(11, held=[held_record(MUTEX, since=5 * SECOND)])
    assert exit_snapshot.last_sign_of_life(reading(held, **start), recorder, 0) == 5 * SECOND
    waits = raw_thread(12, wait_block(MUTEX, since=6 * SECOND))
    both = reading(held, waits, **start)
    assert exit_snapshot.last_sign_of_life(both, recorder, 0) == 6 * SECOND
    recorder.newest = [event(4 * SECOND, 2 * SECOND, 1 * SECOND)]
    assert exit_snapshot.last_sign_of_life(both, recorder, 0) == 7 * SECOND
    recorder.marks = [RawMark(tid=11, start=8 * SECOND, text=b"")]
    assert exit_snapshot.last_sign_of_life(both, recorder, 0) == 8 * SECOND


def test_no_process_lived_after_the_scan_of_its_file(recorder: FlightRecorder) -> None:
    held = raw_thread(11, held=[held_record(MUTEX, since=NOW + 1)])
    assert exit_snapshot.last_sign_of_life(reading(held), recorder, 5) == 5
    held = raw_thread(11, held=[held_record(MUTEX, since=NOW)])
    assert exit_snapshot.last_sign_of_life(reading(held), recorder, 5) == NOW


@pytest.mark.parametrize("exited", [False, True])
def test_a_killed_process_keeps_its_waits_and_an_exited_one_does_not(exited: bool) -> None:
    draft = scenarios.normal().draft()
    now = reading(raw_thread(11), state=lib.LT_EXITED if exited else lib.LT_RUNNING)
    exit_snapshot.annotate(draft, now, None)
    assert draft.ended
    assert not any(thread.alive or thread.cpu_share or thread.time for thread in draft.threads)
    assert any(thread.waiting_for for thread in draft.threads) is not exited
    assert any(thread.holds for thread in draft.threads) is not exited
    assert any(lock.waiters for lock in draft.locks) is not exited
    assert any(lock.holders for lock in draft.locks) is not exited
    assert all(lock.rates == LockRates() for lock in draft.locks)
    assert not any(thread.wait_share or thread.idle_share for thread in draft.threads)


def test_rates_and_shares_are_those_of_the_last_scan() -> None:
    last, draft = scenarios.normal(), scenarios.normal().draft()
    draft.threads = tuple(
        replace(thread, wait_share=0.123, idle_share=0.123) for thread in draft.threads
    )
    draft.locks = tuple(replace(lock, rates=LockRates()) for lock in draft.locks)
    draft.process = replace(draft.process, rss_bytes=1, cpu_share=2.0)
    exit_snapshot.annotate(draft, reading(raw_thread(11)), last)
    assert [(thread.wait_share, thread.idle_share) for thread in draft.threads] == [
        (thread.wait_share, thread.idle_share) for thread in last.threads
    ]
    assert any(thread.wait_share for thread in draft.threads)
    assert [lock.rates for lock in draft.locks] == [lock.rates for lock in last.locks]
    assert draft.process == replace(last.process, cpu_share=0.0)


def test_the_threads_of_the_last_scan_stay_where_the_library_watched_none() -> None:
    last, draft = scenarios.normal(), scenarios.normal().draft()
    draft.threads = ()
    exit_snapshot.annotate(draft, reading(), last)
    assert [thread.tid for thread in draft.threads] == [thread.tid for thread in last.threads]
    draft.threads = last.threads[:1]
    exit_snapshot.annotate(draft, reading(raw_thread(last.threads[0].tid)), last)
    assert [thread.tid for thread in draft.threads] == [last.threads[0].tid]
    draft.threads = ()
    exit_snapshot.annotate(draft, reading(), None)
    assert draft.threads == ()
