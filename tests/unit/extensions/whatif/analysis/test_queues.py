"""Conditions: which signal ended which wait, and what a broadcast adds."""

from __future__ import annotations

from msgspec.structs import replace
from unit.builders.simulated import US, hold

from locktop.collector.extensions.whatif.analysis.boundaries import At, thread_boundaries
from locktop.collector.extensions.whatif.analysis.queues import Queues
from locktop.collector.model import Kind, SignalRecord, WaitRecord

COND, MUTEX = 66, 65


def wait(tid: int, began_us: float, ended_us: float) -> WaitRecord:
    record = hold(tid, COND, ended_us, 0, wait_us=ended_us - began_us)
    return replace(record, kind=Kind.COND, hold_ns=None)


def signal(tid: int, at_us: float, wakes_all: bool = False) -> SignalRecord:
    return SignalRecord(
        tid=tid, lock=COND, kind=Kind.COND, time_ns=round(at_us * US), wakes_all=wakes_all
    )


class Found:
    """The threads that each signal of thread 9 woke, and those whose waits some signal ended."""

    def __init__(self, waits: list[WaitRecord], signals: list[SignalRecord]) -> None:
        boundaries = thread_boundaries(waits, signals)
        self.queues = Queues(boundaries)
        self.ended = [
            list(self.queues.ended(9, number))
            for number, one in enumerate(boundaries[9])
            if one.at is At.SIGNALLED
        ]
        self.known = [
            tid
            for tid in sorted(boundaries)
            for number, one in enumerate(boundaries[tid])
            if one.at is At.GOT and self.queues.is_known(tid, number)
        ]


def test_a_broadcast_ends_all_waits() -> None:
    waits = [wait(1, 0, 102), wait(2, 50, 104), wait(3, 110, 202)]
    found = Found(waits, [signal(9, 100, wakes_all=True), signal(9, 200, wakes_all=True)])
    assert found.ended == [[1, 2], [3]]
    assert found.known == [1, 2, 3]


def test_a_signal_ends_one_wait() -> None:
    waits = [wait(1, 0, 102), wait(2, 50, 107)]
    found = Found(waits, [signal(9, 100), signal(9, 105), signal(9, 300)])
    assert found.ended == [[1], [2], []]  # nobody waited for the last one


def test_the_thread_that_waits_for_longest_is_woken_first() -> None:
    # The first waiter needs longer until it has the mutex back.
    found = Found([wait(1, 0, 108), wait(2, 50, 106)], [signal(9, 100), signal(9, 105)])
    assert (found.ended, found.known) == ([[1], [2]], [1, 2])


def test_a_wait_that_no_signal_ended_is_not_known() -> None:
    found = Found([wait(1, 0, 90), wait(2, 50, 102)], [signal(9, 100)])
    assert (found.ended, found.known) == ([[2]], [2])


def test_a_thread_that_waits_takes_its_unit_after_the_wait() -> None:
    """Two threads hold one unit in turns. Each takes the mutex, waits, and signals later."""
    records, signals = [], []
    for number in range(20):
        tid, at_us = 1 + number % 2, 100.0 * number
        records += [
            hold(tid, MUTEX, at_us - 50, 1, site=1),
            wait(tid, at_us - 49, at_us),
            hold(tid, MUTEX, at_us + 1, 1, wait_us=0.5, site=2),
            hold(tid, MUTEX, at_us + 95, 4, site=3),
        ]
        signals.append(signal(tid, at_us + 97))
    # Others still wait at the end: their waits belong to the next span.
    records += [hold(tid, MUTEX, 1990, 1, site=1) for tid in (3, 4, 5)]
    queues = Queues(thread_boundaries(records, signals))
    assert queues.is_counted(COND)
    assert queues.first_units(COND) == 1


def test_a_repeated_span_adds_as_many_units_as_it_takes() -> None:
    def sem(tid: int, at_us: float) -> WaitRecord:
        return replace(hold(tid, 70, at_us, 0), kind=Kind.SEM, hold_ns=None)

    def post(tid: int, at_us: float) -> SignalRecord:
        return replace(signal(tid, at_us), lock=70, kind=Kind.SEM)

    equal = Queues(thread_boundaries([sem(1, 20), sem(1, 40)], [post(2, 10), post(2, 30)]))
    assert equal.first_units(70) == 0
    assert not any(equal.is_surplus(tid, number) for tid in (1, 2) for number in range(2))
    more_taken = Queues(thread_boundaries([sem(1, 20), sem(1, 40)], [post(2, 30)]))
    assert more_taken.first_units(70) == 1
    assert [more_taken.is_surplus(1, number) for number in range(2)] == [False, True]
    more_added = Queues(thread_boundaries([sem(1, 20)], [post(2, 10), post(2, 30)]))
    assert more_added.first_units(70) == 1
    assert [more_added.is_surplus(2, number) for number in range(2)] == [True, False]


def test_the_units_of_a_pool_belong_to_the_threads_that_take_them() -> None:
    """Two units, of which one is held at the begin, and another one at the end."""

    def sem(tid: int, at_us: float) -> WaitRecord:
        return replace(hold(tid, 70, at_us, 0), kind=Kind.SEM, hold_ns=None)

    def post(tid: int, at_us: float) -> SignalRecord:
        return replace(signal(tid, at_us), lock=70, kind=Kind.SEM)

    takes = [sem(2, 5), sem(1, 20), sem(1, 40)]
    posts = [post(1, 10), post(2, 25), post(1, 30)]
    pool = Queues(thread_boundaries(takes, posts))
    assert [pool.is_surplus(1, number) for number in range(4)] == [True, False, False, True]
    assert not any(pool.is_surplus(2, number) for number in range(2))
    assert pool.first_units(70) == 2
