"""The recorded waits that a kept snapshot of the screen needs."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from locktop.collector.model import Event, Kind
from locktop.collector.recording.past_events import MAX_EVENTS, newest_of_each
from locktop.tui.views import detail_parts


def _events(count: int, threads: int, locks: int) -> list[Event]:
    chosen = random.Random(5)
    return [
        Event(
            tid=chosen.randrange(threads),
            lock=chosen.randrange(locks),
            kind=Kind.MUTEX,
            ago_s=float(number),
            wait_s=1.0,
            hold_s=None if number % 2 else 0.5,
            stack=0,
            holder=0,
            site=0,
            timed_out=False,
        )
        for number in range(count)
    ]


def test_the_details_of_each_lock_and_thread_list_the_same_waits() -> None:
    events = _events(300, threads=4, locks=3)
    kept = newest_of_each(events)
    for tid in range(4):
        assert _newest(kept, "tid", tid) == _newest(events, "tid", tid)
    for lock in range(3):
        assert _newest(kept, "lock", lock) == _newest(events, "lock", lock)
    assert len(kept) <= (4 + 3) * MAX_EVENTS


def _newest(events: Sequence[Event], key: str, id_: int) -> list[Event]:
    return [one for one in events if getattr(one, key) == id_][:MAX_EVENTS]


def test_few_events_are_all_kept_in_their_order() -> None:
    events = _events(MAX_EVENTS, threads=2, locks=2)
    assert newest_of_each(events) == tuple(events)


def test_durations_have_four_digits_and_ages_microseconds() -> None:
    (exact,) = _events(1, threads=1, locks=1)
    exact = replace(exact, ago_s=123.45678912345, wait_s=0.00309040471590, hold_s=0.0)
    (kept,) = newest_of_each([exact])
    assert kept.ago_s == pytest.approx(exact.ago_s, abs=1e-6)
    assert kept.wait_s == pytest.approx(exact.wait_s, rel=2e-4)
    assert kept.hold_s == 0.0


def test_the_details_list_no_more_than_are_kept() -> None:
    assert detail_parts.MAX_EVENTS <= MAX_EVENTS
