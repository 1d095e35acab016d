"""Ticks of a clock in seconds: the rate of the processor's counter."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from support.shared_file import SharedFile

from locktop.collector.native import lib
from locktop.collector.shm import clock
from locktop.collector.shm.clock import Clock

MS = 1_000_000  # nanoseconds


def counter(monkeypatch: pytest.MonkeyPatch, ticks: int, ns: int, named_hz: int = 0) -> Clock:
    """Return a clock whose counter made ``ticks`` in ``ns`` nanoseconds since the start."""
    monkeypatch.setattr(clock, "clock_pair", lambda _: (500 + ticks, 700 + ns))
    header = SharedFile().header_record()
    return Clock(
        header._replace(
            clock=lib.LT_CLOCK_COUNTER, clock0_ticks=500, clock0_ns=700, clock_hz=named_hz
        )
    )


def test_ticks_of_the_monotonic_clock_are_nanoseconds() -> None:
    monotonic = Clock(SharedFile().header_record())
    assert monotonic.seconds(2_500_000_000) == 2.5
    assert monotonic.ticks(0.25) == 250_000_000
    assert monotonic.seconds(-1) == 0.0
    assert abs(monotonic.now() - time.monotonic_ns()) < 60 * 1e9


def test_the_rate_is_the_measured_one(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = counter(monkeypatch, 30 * MS, 10 * MS)
    assert measured.seconds(3_000_000_000) == 1.0
    assert measured.ticks(2.0) == 6_000_000_000


@pytest.mark.parametrize(
    ("measured_hz", "hz"),
    [(2_000_000_000, 2e9), (2_019_000_000, 2.019e9), (2_021_000_000, 2e9), (1_979_000_000, 2e9)],
)
def test_a_rate_far_from_the_named_one_is_not_trusted(
    monkeypatch: pytest.MonkeyPatch, measured_hz: int, hz: float
) -> None:
    found = counter(monkeypatch, measured_hz, 1000 * MS, 2_000_000_000)
    assert found.ticks(1.0) == int(hz)


@pytest.mark.parametrize(
    ("measured_hz", "hz"),
    [(1_000_000, 1e6), (999_999, 1e9), (100_000_000_000, 1e11), (100_000_000_001, 1e9)],
)
def test_a_rate_that_no_processor_has_is_not_used(
    monkeypatch: pytest.MonkeyPatch, measured_hz: int, hz: float
) -> None:
    assert counter(monkeypatch, measured_hz, 1000 * MS).ticks(1.0) == int(hz)


def test_a_young_process_with_a_named_rate_has_that_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: float) -> None:
        raise AssertionError("slept")

    monkeypatch.setattr(time, "sleep", refuse)
    assert counter(monkeypatch, 30 * MS, 10 * MS - 1, 2_000_000_000).ticks(1.0) == 2e9
    assert counter(monkeypatch, 30 * MS, 10 * MS).ticks(1.0) == 3e9


def test_a_young_process_is_measured_a_little_later(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    def pairs() -> Callable[[int], tuple[int, int]]:
        return lambda _: (500 + 30 * MS, 700 + 10 * MS) if slept else (500, 700 + 10 * MS - 1)

    def sleep(duration_s: float) -> None:
        slept.append(duration_s)

    monkeypatch.setattr(clock, "clock_pair", pairs())
    monkeypatch.setattr(time, "sleep", sleep)
    header: Any = SharedFile().header_record()
    header = header._replace(clock=lib.LT_CLOCK_COUNTER, clock0_ticks=500, clock0_ns=700)
    assert Clock(header).ticks(1.0) == 3e9
    assert slept == [0.01]


def test_a_clock_before_the_start_is_damage_and_no_young_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("slept"))
    assert counter(monkeypatch, -5, -1).ticks(1.0) == 1e9


def test_the_real_counter_gives_real_seconds() -> None:
    header = SharedFile().header_record()
    one = Clock(header)
    ticks, ns = clock.clock_pair(lib.LT_CLOCK_COUNTER)
    assert abs(ns - time.monotonic_ns()) < 60 * 1e9
    assert ticks <= clock.clock_pair(lib.LT_CLOCK_COUNTER)[0]
    assert one.kind == lib.LT_CLOCK_MONOTONIC


def test_ticks_and_wall_time_are_of_one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel suspends the thread in the first and in the last of three readings."""
    wall = iter((0, 5 * MS, 10 * MS, 10 * MS + 200, 20 * MS, 22 * MS))
    monkeypatch.setattr(clock.time, "time_ns", lambda: next(wall))
    ticks = iter((1, 2, 3))
    found = Clock(SharedFile().header_record())
    monkeypatch.setattr(found, "now", lambda: next(ticks))
    assert found.now_with_wall_time() == (2, 10 * MS + 100)
