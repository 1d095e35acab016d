"""The memory of a live screen has all moments, but not each scan of a large process."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace
from unit.builders import scenarios
from unit.builders.waits import wait, waiting
from unit.shm.test_event_ring import Ring

from locktop.collector.linux.process_info import iso
from locktop.collector.model import NotableKind
from locktop.collector.native import offset_of
from locktop.collector.recording.history import LEAST_BYTES, History
from locktop.collector.recording.memory_keeper import MemoryKeeper
from locktop.collector.recording.moments import EarlierWaits
from locktop.collector.shm.ring_drain import FIRST_CALLS, RingDrain
from locktop.collector.sources.attach import Source

_SECOND = 1_000_000_000
_BEGIN = 1_790_000_000 * _SECOND


class _Process:
    """A source without rings, and clocks that a test sets."""

    def __init__(self, history: History, cost_s: float) -> None:
        self.now_ns, self.cpu_s, self._cost_s = _BEGIN, 0.0, cost_s
        self.keeper = MemoryKeeper(
            cast(Source, self), history, wall_ns=lambda: self.now_ns, cpu_s=self._cpu
        )

    def _cpu(self) -> float:
        self.cpu_s += self._cost_s / 2
        return self.cpu_s

    def drain(self, first_calls: int = 0) -> None:
        """See Source."""


class _HasRings:
    """A source with the ring of one thread."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring

    def drain(self, first_calls: int = FIRST_CALLS) -> RingDrain:
        """See Source."""
        return RingDrain(self._ring.memory, first_calls)


def test_each_scan_of_a_small_process_is_kept() -> None:
    history = History()
    process = _Process(history, cost_s=0.001)
    for _ in range(20):
        process.keeper.keep(waiting())
        process.now_ns += _SECOND // 2
    assert len(history.times_ns()) == 20


def test_a_snapshot_has_the_time_at_which_the_process_was_read() -> None:
    history = History()
    process = _Process(history, cost_s=0.0)
    process.keeper.keep(replace(waiting(), taken_at=iso(_BEGIN / _SECOND - 0.5)))
    assert history.times_ns() == [_BEGIN - _SECOND // 2]


def test_a_time_that_no_scan_can_have_is_not_taken() -> None:
    history = History()
    process = _Process(history, cost_s=0.0)
    for text in ("", "yesterday", iso(_BEGIN / _SECOND + 60), iso(_BEGIN / _SECOND - 3600)):
        process.keeper.keep(replace(waiting(), taken_at=text))
        assert history.times_ns()[-1] == process.now_ns
        process.now_ns += _SECOND


def test_without_rings_earlier_waits_have_no_records() -> None:
    history = History()
    process = _Process(history, cost_s=0.0)
    process.keeper.keep(waiting())
    assert history.earlier_waits is EarlierWaits.UNRECORDED


@pytest.mark.parametrize(
    ("dropped", "level", "known"),
    [
        (0, "contended", EarlierWaits.KNOWN),
        (1, "contended", EarlierWaits.OVERWRITTEN),
        (0, "counting", EarlierWaits.UNRECORDED),
        (0, "dormant", EarlierWaits.UNRECORDED),
    ],
)
def test_the_begin_decides_what_is_known_of_earlier_waits(
    dropped: int, level: str, known: EarlierWaits, tmp_path: Path
) -> None:
    ring, history = Ring(tmp_path, 16), History()
    ring.write(3)
    at = ring.file.offset_of(ring.block) + offset_of("struct lt_thread", "long_waits_dropped")
    os.pwrite(ring.memory.fd, dropped.to_bytes(8, "little"), at)
    keeper = MemoryKeeper(_HasRings(ring), history)
    keeper.keep(replace(waiting(), level=level))
    keeper.close()
    assert history.earlier_waits is known


def test_a_large_process_is_kept_less_often() -> None:
    history = History()
    process = _Process(history, cost_s=0.1)
    for _ in range(200):
        process.keeper.keep(waiting())
        process.now_ns += _SECOND // 2
    assert 8 <= len(history.times_ns()) <= 25


def test_a_small_memory_reaches_as_far_back_as_a_large_one() -> None:
    history = History(LEAST_BYTES, span_s=600.0)
    process = _Process(history, cost_s=0.0)
    for number in range(2 * 600):
        text = random.Random(number).randbytes(10_000).hex()
        process.keeper.keep(replace(waiting(), notes=(text,)))
        process.now_ns += _SECOND // 2
    assert history.size <= LEAST_BYTES
    assert history.times_ns()[-1] - history.times_ns()[0] > 400 * _SECOND


def test_a_deadlock_is_kept_right_after_a_long_wait_was() -> None:
    history = History()
    process = _Process(history, cost_s=0.1)
    for snapshot in (waiting(), waiting(), scenarios.deadlock()):
        process.keeper.keep(snapshot)
        process.now_ns += _SECOND // 10
    (found,) = (one for one in history.notables() if one.kind is NotableKind.DEADLOCK)
    assert history.snapshot_at(found.time_ns).deadlocks


def test_a_scan_with_an_alert_is_kept_although_another_was_kept_just_before() -> None:
    history = History()
    process = _Process(history, cost_s=0.02)
    process.keeper.keep(waiting())
    for after_s in (0.5, 1.0):
        process.now_ns = _BEGIN + round(after_s * _SECOND)
        process.keeper.keep(waiting() if after_s < 1 else scenarios.deadlock())
    assert len(history.times_ns()) == 2
    found = [one for one in history.notables() if one.kind is NotableKind.DEADLOCK]
    assert [one.time_ns for one in found] == [_BEGIN + _SECOND]
    assert history.snapshot_at(found[0].time_ns).deadlocks


def test_a_moment_of_a_scan_that_is_not_kept_is_kept() -> None:
    history = History()
    process = _Process(history, cost_s=1.0)
    process.keeper.keep(waiting())
    process.now_ns += _SECOND // 2
    process.keeper.keep(waiting(t1=wait(duration_s=3.0)))
    assert len(history.times_ns()) == 1
    assert [one.kind for one in history.notables()] == [NotableKind.WAIT]


def test_times_go_forward_although_the_clock_goes_back() -> None:
    history = History()
    process = _Process(history, cost_s=0.0)
    for _ in range(3):
        process.keeper.keep(replace(waiting(), ended=True))
        process.now_ns -= _SECOND
    times = history.times_ns()
    assert list(times) == sorted(set(times))
