"""Semaphores as locks, and those that count units."""

from __future__ import annotations

from msgspec.structs import replace
from unit.builders.simulated import US, hold

from locktop.collector.extensions.whatif.analysis.evidence import Evidence
from locktop.collector.extensions.whatif.analysis.semaphore_locks import convert_semaphores
from locktop.collector.model import Kind, SignalRecord, WaitRecord

SEM = 67


def take(tid: int, got_us: float) -> WaitRecord:
    return replace(hold(tid, SEM, got_us, 1), kind=Kind.SEM, hold_ns=None)


def post(tid: int, at_us: float) -> SignalRecord:
    return SignalRecord(
        tid=tid, lock=SEM, kind=Kind.SEM, time_ns=round(at_us * US), wakes_all=False
    )


def evidence(records: list[WaitRecord], signals: list[SignalRecord]) -> Evidence:
    return Evidence(
        from_ns=0,
        to_ns=100_000 * US,
        records=records,
        signals=signals,
        samples=(),
        times={},
        losses=(),
        cpus=2,
    )


def taken_in_turns(overlap_us: float = 0.0) -> Evidence:
    """Two threads hold the unit for 30 us each, in turns."""
    takes = [take(number % 2 + 1, 50 * number) for number in range(100)]
    posts = [post(number % 2 + 1, 50 * number + 30 + overlap_us) for number in range(100)]
    return evidence(takes, posts)


def test_a_unit_that_its_taker_posts_is_a_hold() -> None:
    before = taken_in_turns()
    other = hold(3, 65, 10, 5)
    found = convert_semaphores(replace(before, records=[*before.records, other]))
    assert not found.signals
    assert other in found.records
    holds = [one for one in found.records if one.lock == SEM]
    assert len(holds) == 100
    assert {(one.kind, one.hold_ns) for one in holds} == {(Kind.MUTEX, 30 * US)}


def test_a_hold_that_goes_on_at_the_end_is_left_out() -> None:
    before = taken_in_turns()
    found = convert_semaphores(replace(before, signals=before.signals[:-1]))
    assert len(found.records) == 99


def test_units_that_another_thread_posts_are_a_queue() -> None:
    before = taken_in_turns()
    posts = [replace(one, tid=9) for one in before.signals]
    queue = replace(before, signals=posts)
    assert convert_semaphores(queue) is queue


def test_several_units_are_no_lock() -> None:
    pool = taken_in_turns(overlap_us=30)
    assert convert_semaphores(pool) is pool
