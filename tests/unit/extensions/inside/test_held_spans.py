"""Samples and holds, joined by time."""

from __future__ import annotations

import random

from locktop.collector.extensions.inside.held_spans import charge, recorded_spans, unrecorded_spans
from locktop.collector.extensions.inside.model import HeldSpan, HolderSample
from locktop.collector.model import Kind, WaitRecord

LOCK, OTHER_LOCK = 7, 8
SITE = 0x401000


def record(
    tid: int,
    began_ns: int,
    wait_ns: int = 0,
    hold_ns: int | None = None,
    holder: int = 0,
    lock: int = LOCK,
    kind: Kind = Kind.MUTEX,
    timed_out: bool = False,
) -> WaitRecord:
    return WaitRecord(
        tid, lock, kind, began_ns, wait_ns, hold_ns, 1, holder, SITE, timed_out
    )  # fmt: skip


def sample(tid: int, time_ns: int) -> HolderSample:
    return HolderSample(tid, time_ns, stack=1, on_cpu=True)


def spans_of(*waits: WaitRecord) -> list[tuple[int, int, int]]:
    found = unrecorded_spans(waits, waits)
    return [(one.tid, one.begin_ns, one.end_ns) for one in found]


def test_a_hold_begins_at_the_end_of_its_wait() -> None:
    (span,) = recorded_spans([record(1, 100, wait_ns=50, hold_ns=30)])
    assert span == HeldSpan(1, LOCK, 150, 180, SITE)


def test_a_wait_without_a_hold_gives_no_span() -> None:
    waits = [record(1, 100, 50), record(1, 100, 50, hold_ns=3, timed_out=True)]
    assert recorded_spans(waits) == []


def test_a_wait_names_a_hold_without_a_record() -> None:
    assert spans_of(record(1, 100, 50, hold_ns=30, holder=2)) == [(2, 100, 150)]


def test_a_reader_is_not_the_only_holder() -> None:
    assert spans_of(record(1, 100, 50, hold_ns=30, holder=2, kind=Kind.RWLOCK)) == []


def test_the_named_hold_ends_where_the_holder_waits_again() -> None:
    waits = record(1, 100, 50, hold_ns=30, holder=2), record(2, 120, 90, holder=1)
    assert spans_of(*waits)[0] == (2, 100, 120)


def test_the_named_hold_ends_where_another_thread_gets_the_lock() -> None:
    waits = record(1, 100, 50, hold_ns=30, holder=2), record(3, 90, 40, hold_ns=5)
    assert spans_of(*waits) == [(2, 100, 130)]


def test_a_recorded_hold_of_the_named_thread_tells_more() -> None:
    waits = record(1, 100, 50, hold_ns=30, holder=2), record(2, 80, 0, hold_ns=40)
    assert spans_of(*waits) == []
    only = record(1, 100, 50, hold_ns=30, holder=2)
    assert unrecorded_spans([only], [only], {(2, LOCK)}) == []


def test_a_sample_belongs_to_all_locks_that_its_thread_held() -> None:
    spans = recorded_spans([record(1, 0, 0, 100), record(1, 20, 0, 30, lock=OTHER_LOCK)])
    samples = {1: [sample(1, time_ns) for time_ns in (0, 20, 49, 50, 100)], 2: [sample(2, 20)]}
    found = [(span.lock, one.time_ns) for span, one in charge(samples, spans)]
    assert found == [
        (LOCK, 0),
        (LOCK, 20),
        (LOCK, 49),
        (LOCK, 50),
        (OTHER_LOCK, 20),
        (OTHER_LOCK, 49),
    ]


def test_a_sample_that_took_longer_than_the_hold_is_not_charged() -> None:
    spans = [HeldSpan(1, 7, 10, 50, 0)]
    taken = [(5, 15), (10, 12), (40, 49), (45, 50), (45, 90)]
    samples = [HolderSample(1, begin, stack=1, on_cpu=False, read_ns=end) for begin, end in taken]
    found = [(one.time_ns, one.read_ns) for _, one in charge({1: samples}, spans)]
    assert found == [(10, 12), (40, 49)]


def test_random_turns_at_a_lock_are_charged_to_their_holders() -> None:
    """A simulation knows who holds the lock; the join must find the same."""
    for seed in range(200):
        chance = random.Random(seed)
        truth, records = _turns(chance)
        samples = {
            tid: sorted(
                (sample(tid, chance.randrange(truth[-1][2] + 50)) for _ in range(40)),
                key=lambda one: one.time_ns,
            )
            for tid in range(1, 4)
        }
        spans = [*recorded_spans(records), *unrecorded_spans(records, records)]
        found = {(one.tid, one.time_ns) for _, one in charge(samples, spans)}
        inside = {
            (one.tid, one.time_ns)
            for of_thread in samples.values()
            for one in of_thread
            if any(tid == one.tid and begin <= one.time_ns < end for tid, begin, end in truth)
        }
        # Of a hold without a record, the part before the first wait is not known.
        assert found <= inside, seed
        recorded = {one.tid: one for one in records if one.hold_ns is not None}
        for tid, begin, end in truth:
            if any(one.tid == tid and one.got_ns == begin for one in records):
                assert {key for key in inside if key[0] == tid and begin <= key[1] < end} <= found
        assert recorded


def _turns(chance: random.Random) -> tuple[list[tuple[int, int, int]], list[WaitRecord]]:
    """Return who held the lock when, and the records. Each thread waits for the one before."""
    truth, records = [], []
    now, before = 0, 0
    for number in range(chance.randrange(2, 12)):
        tid, hold = number % 3 + 1, chance.randrange(1, 100)
        waited = number > 0 and chance.random() < 0.7
        if not waited:
            now += chance.randrange(1, 50)
            truth.append((tid, now, now + hold))
            if chance.random() < 0.5:
                records.append(record(tid, now, 0, hold))
        else:
            began = chance.randrange(truth[-1][1], now)
            truth.append((tid, now, now + hold))
            records.append(record(tid, began, now - began, hold, holder=before))
        before = tid
        now += hold
    records.append(record(9, now, 0, 1))
    return truth, records
