"""Futexes that are locks of one holder, as mutexes of a replay."""

from __future__ import annotations

from operator import itemgetter

import pytest
from msgspec.structs import replace
from unit.builders.simulated import US, hold

from locktop.collector.extensions.whatif.analysis.evidence import Evidence
from locktop.collector.extensions.whatif.analysis.futex_locks import convert_futexes
from locktop.collector.model import Kind, WaitRecord

MUTEX = 66
SPAN_US = 1000


def wait(tid: int, began_us: float, got_us: float, hold_us: float | None) -> WaitRecord:
    record = hold(tid, MUTEX, got_us, hold_us or 0, got_us - began_us)
    return replace(record, kind=Kind.FUTEX, hold_ns=None if hold_us is None else record.hold_ns)


def release(tid: int, at_us: float, hold_us: float | None = None) -> WaitRecord:
    return replace(
        wait(tid, at_us - (hold_us or 0), at_us - (hold_us or 0), hold_us), is_release=True
    )


def converted(*records: WaitRecord, is_timed: bool = True) -> Evidence:
    return convert_futexes(
        Evidence(
            from_ns=0,
            to_ns=SPAN_US * US,
            records=records,
            signals=(),
            samples=(),
            times={},
            losses=(),
            cpus=2,
            futex_locks=frozenset({MUTEX}),
            timed_futexes=frozenset({MUTEX} if is_timed else ()),
        )
    )


def acquisitions(evidence: Evidence) -> list[tuple[int, float, float, float]]:
    """Return thread, begin, wait and hold of each acquisition, in microseconds."""
    assert all(record.kind is Kind.MUTEX for record in evidence.records)
    assert not any(record.is_release for record in evidence.records)
    return sorted(
        [
            (record.tid, record.began_ns / US, record.wait_ns / US, (record.hold_ns or 0) / US)
            for record in evidence.records
        ],
        key=itemgetter(1, 0),
    )


def test_holds_that_fill_the_span_are_those_of_a_mutex() -> None:
    evidence = converted(wait(1, 0, 10, 480), wait(2, 20, 500, 490))
    assert acquisitions(evidence) == [(1, 0, 10, 480), (2, 20, 480, 490)]
    assert not evidence.futex_locks
    assert evidence.partly_seen == {MUTEX: pytest.approx(0.97)}


@pytest.mark.parametrize("is_timed", [True, False])
def test_a_lock_with_time_for_other_holds_stays_a_futex(is_timed: bool) -> None:
    records = [wait(1, 0, 10, 390), wait(2, 20, 500, 300)], [wait(1, 0, 10, 900)]
    evidence = converted(*records[not is_timed], release(3, 990), is_timed=is_timed)
    assert list(evidence.records) == records[not is_timed]
    assert evidence.futex_locks == {MUTEX}
    assert not evidence.partly_seen


def test_waits_in_vain_are_part_of_the_wait_that_follows() -> None:
    evidence = converted(wait(1, 0, 10, 390), wait(2, 20, 400, None), wait(2, 405, 500, 450))
    assert acquisitions(evidence) == [(1, 0, 10, 390), (2, 20, 480, 450)]


def test_a_wait_that_the_kernel_refused_ends_when_its_hold_begins() -> None:
    evidence = converted(wait(1, 0, 10, 390), wait(2, 20, 400, None), release(2, 950, 545))
    assert acquisitions(evidence) == [(1, 0, 10, 390), (2, 20, 385, 545)]


def test_a_hold_without_a_wait_lasts_as_long_as_others_waited_for_it() -> None:
    evidence = converted(release(1, 500), wait(2, 20, 510, 450))
    assert acquisitions(evidence) == [(1, 20, 0, 480), (2, 20, 490, 450)]


def test_a_hold_without_a_wait_begins_after_the_release_before() -> None:
    evidence = converted(wait(3, 0, 10, 190), wait(2, 20, 510, 450), release(1, 500))
    assert acquisitions(evidence) == [(3, 0, 10, 190), (2, 20, 490, 450), (1, 200, 0, 300)]


def test_the_hold_at_the_end_goes_on_until_then() -> None:
    evidence = converted(wait(1, 0, 10, 390), wait(2, 20, 400, None))
    assert acquisitions(evidence) == [(1, 0, 10, 390), (2, 20, 380, 600)]


def test_a_release_of_another_futex_is_no_acquisition() -> None:
    other = replace(release(1, 500), lock=67)
    assert other not in converted(wait(1, 0, 10, 980), other).records
