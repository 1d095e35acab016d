"""Records of waits and holds that go on at the end of a span."""

from __future__ import annotations

import pytest
from unit.builders.records import lock, snapshot, thread, wait
from unit.builders.simulated import US, hold

from locktop.collector.extensions.whatif.open_records import OpenRecords, open_records
from locktop.collector.model import Held, Kind, ThreadState, WaitRecord

TO_NS = 1_000_000_000
#: The snapshot is taken two milliseconds after the span.
AT_NS = TO_NS + 2_000 * US
WAITER, HOLDER, LOCK = 1, 2, 65


def found(
    records: list[WaitRecord], wait_s: float = 0.5, hold_s: float | None = 0.6
) -> OpenRecords:
    threads = (
        thread(
            WAITER,
            "waiter",
            ThreadState.WAITING,
            waiting_for=wait(LOCK, Kind.MUTEX, wait_s, HOLDER),
        ),
        thread(HOLDER, "holder", ThreadState.RUNNING, holds=(Held(LOCK, 7, hold_s),)),
    )
    return open_records(snapshot(threads, (lock(LOCK, "m"),)), AT_NS, records, TO_NS)


def test_a_wait_goes_on_past_the_end() -> None:
    [waits] = found([]).waits
    assert (waits.tid, waits.lock, waits.kind) == (WAITER, LOCK, Kind.MUTEX)
    assert waits.began_ns == pytest.approx(AT_NS - 500_000 * US)
    assert waits.got_ns == TO_NS + 1
    assert waits.hold_ns is None


def test_a_hold_lasts_until_the_end() -> None:
    [held] = found([]).holds
    assert (held.tid, held.lock, held.site, held.wait_ns) == (HOLDER, LOCK, 7, 0)
    assert held.began_ns == pytest.approx(AT_NS - 600_000 * US)
    assert held.end_ns == TO_NS


def test_nothing_begins_before_the_last_record_is_over() -> None:
    # The time of the snapshot is rounded.
    both = found([hold(WAITER, LOCK, 600_000, 1000), hold(HOLDER, LOCK, 700_000, 1000)])
    assert both.waits[0].began_ns == 601_000 * US + 1
    assert both.holds[0].began_ns == 701_000 * US + 1


def test_a_record_that_reaches_past_the_end_is_enough() -> None:
    assert found([hold(WAITER, LOCK, 999_000, 2000)]).waits == []


def test_what_began_after_the_end_is_left_out() -> None:
    both = found([], wait_s=0.001, hold_s=0.001)
    assert both == OpenRecords([], [])


def test_a_hold_without_a_time_is_left_out() -> None:
    assert found([], hold_s=None).holds == []
