"""Events and marks of the model from records of the ring."""

from __future__ import annotations

from msgspec.structs import replace
from support.shared_file import monotonic_clock

from locktop.collector.model import Kind
from locktop.collector.native import lib
from locktop.collector.shm.event_ring import RawEvent, RawMark
from locktop.collector.sources.preload import event_builder

SECOND = 1_000_000_000
RAW = RawEvent(
    type=lib.LT_RECORD_WAIT, kind=lib.LT_KIND_SEM, tid=7, lock=3, stack=4, holder=8,
    start=10 * SECOND, wait=2 * SECOND, hold=0, site=0x10,
)  # fmt: skip


def test_an_event_has_the_times_of_its_record_in_seconds() -> None:
    event = event_builder.event(RAW, 15 * SECOND, monotonic_clock())
    assert event is not None
    assert (event.tid, event.lock, event.kind, event.stack) == (7, 3, Kind.SEM, 4)
    assert (event.holder, event.site) == (8, 0x10)
    assert (event.ago_s, event.wait_s, event.hold_s) == (5.0, 2.0, None)
    assert not event.timed_out


def test_an_event_of_a_hold_has_its_length() -> None:
    raw = replace(RAW, type=lib.LT_RECORD_HOLD, hold=3 * SECOND)
    event = event_builder.event(raw, 15 * SECOND, monotonic_clock())
    assert event is not None
    assert event.hold_s == 3.0


def test_only_a_timeout_is_timed_out() -> None:
    raw = replace(RAW, type=lib.LT_RECORD_TIMEOUT)
    event = event_builder.event(raw, 15 * SECOND, monotonic_clock())
    assert event is not None
    assert event.timed_out


def test_a_wake_of_a_futex_is_no_event() -> None:
    assert (
        event_builder.event(replace(RAW, type=lib.LT_RECORD_RELEASE), 0, monotonic_clock()) is None
    )


def test_a_record_of_an_unknown_kind_is_no_event() -> None:
    assert event_builder.event(replace(RAW, kind=100), 0, monotonic_clock()) is None


def test_a_mark_has_its_text_and_age() -> None:
    raw = RawMark(tid=7, start=10 * SECOND, text=b"phase\x1b[1m two")
    found = event_builder.mark(raw, 12 * SECOND, monotonic_clock())
    assert (found.tid, found.ago_s) == (7, 2.0)
    assert "phase" in found.text
    assert "\x1b" not in found.text
