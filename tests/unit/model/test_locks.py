"""Locks, and the holders that wait time is charged to."""

from __future__ import annotations

import pytest
from unit.builders import records

from locktop.collector.model import WAITS_ALONE, Blame, Kind, Lock, LockRates


@pytest.mark.parametrize(
    ("tid", "site", "text"),
    [
        (7, 0x40, ""),
        (7, 0, ""),
        (0, 0x40, "threads that ended"),
        (0, 0, "no known holder"),
    ],
)
def test_blame_without_a_thread_has_words(tid: int, site: int, text: str) -> None:
    assert Blame(tid, site, 1.0).holder_label == text


def test_blame_of_one_holder_has_one_key() -> None:
    assert Blame(7, 0x40, 1.0, 3).holder == Blame(7, 0x40, 2.0, 3).holder
    assert Blame(7, 0x40, 1.0, 3).holder != Blame(7, 0x40, 1.0).holder


def test_idle_waits_count_only_for_an_idle_lock() -> None:
    mixed = records.lock(1, "m", wait_s=5.0)
    assert mixed.counted_wait_s == 5.0
    idle = records.lock(2, "c", Kind.COND, wait_s=5.0)
    assert (idle.idle_s, idle.counted_wait_s) == (5.0, 5.0)


def test_the_idle_part_of_a_contended_lock_does_not_count() -> None:
    some_idle = records.some_idle(records.lock(1, "s", Kind.SEM, wait_s=5.0), 2.0)
    assert some_idle.counted_wait_s == 3.0


def test_the_time_without_a_holder_is_a_part_of_the_wait() -> None:
    blame = (Blame(7, 0x40, 2.0), Blame(0, 0x40, 1.0), Blame(0, 0, 0.5), Blame(7, 0, 0.25))
    lock = records.lock(1, "m", wait_s=3.75, blame=blame)
    assert lock.unheld_wait_s == 0.5
    assert records.lock(1, "m").unheld_wait_s == 0.0, "nobody waited"


@pytest.mark.parametrize(
    "lock",
    [
        records.lock(1, "c", Kind.COND, wait_s=1.0),
        records.lock(1, "m", acquisitions=None),
        records.lock(0, "other locks", wait_s=1.0),
    ],
)
def test_where_holders_are_not_charged_that_time_is_not_known(lock: Lock) -> None:
    assert lock.unheld_wait_s is None


@pytest.mark.parametrize(
    ("acquisitions", "signals", "units"),
    [(5, 3, 2), (3, 3, 0), (0, 4, -4), (None, 3, None), (5, None, None), (None, None, None)],
)
def test_the_units_out_of_a_semaphore(
    acquisitions: int | None, signals: int | None, units: int | None
) -> None:
    lock = records.lock(1, "s", Kind.SEM, life_acquisitions=acquisitions, life_signals=signals)
    assert lock.units_out == units


def test_where_waits_alone_are_measured_every_other_rate_is_none() -> None:
    measured = {
        name for name in LockRates.__struct_fields__ if getattr(WAITS_ALONE, name) is not None
    }
    assert measured == {"wait"}
