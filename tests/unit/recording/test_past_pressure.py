"""The pressure of the last minute, from snapshots that are kept."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from unit.builders import records, scenarios

from locktop.collector.model import Notable, Snapshot, ThreadState, WaitRecord
from locktop.collector.recording.past_pressure import PastPressure

NS = 1_000_000_000
BEGIN = 1_790_000_000 * NS
THREADS = 4


class Scans:
    """One snapshot in each second, in which a lock has so many seconds of waits."""

    def __init__(self, waits_s: Sequence[float], each_s: int = 1) -> None:
        self._waits_s = waits_s
        self._each_s = each_s
        self.read = 0

    def times_ns(self) -> list[int]:
        return [BEGIN + at * self._each_s * NS for at in range(len(self._waits_s))]

    def snapshot_at(self, time_ns: int) -> Snapshot:
        self.read += 1
        return self.snapshot(max(0, (time_ns - BEGIN) // (self._each_s * NS)))

    def snapshot(self, number: int) -> Snapshot:
        threads = tuple(
            records.thread(tid, "worker", ThreadState.RUNNING) for tid in range(1, THREADS + 1)
        )
        lock = records.lock(1, "g_lock", wait_s=self._waits_s[number])
        return replace(scenarios.empty(), threads=threads, locks=(lock,))

    def notables(self) -> Sequence[Notable]:
        return ()

    def records(self, from_ns: int, to_ns: int) -> Sequence[WaitRecord]:
        return ()


def phases(scans: Scans, second: int) -> list[tuple[float, float]]:
    """Return shares and seconds of the phases at a second."""
    past, until_ns = PastPressure(scans), BEGIN + second * NS
    past.read(until_ns)
    assert past.is_known(until_ns)
    snapshot = scans.snapshot(second)
    found = past.phases(snapshot, snapshot.locks[0], until_ns)
    return [(pytest.approx(one.share), pytest.approx(one.duration_s)) for one in found]


def test_each_phase_has_the_waits_of_its_own_ten_seconds() -> None:
    # From the 30th to the 40th second two threads of four wait.
    waits = [min(max(second - 30, 0), 10) * 2.0 for second in range(61)]
    assert phases(Scans(waits), 60) == [(0, 10), (0, 10), (0, 10), (0.5, 10), (0, 10), (0, 10)]


def test_the_last_phase_ends_at_the_moment() -> None:
    waits = [max(second - 60, 0) * 1.0 for second in range(80)]
    found = phases(Scans(waits), 65)
    assert found[-1] == (0.25, 5)
    assert [length for _, length in found] == [10] * 5 + [5]


def test_a_young_memory_has_the_phases_that_it_knows() -> None:
    waits = [second * 4.0 for second in range(25)]
    assert phases(Scans(waits), 24) == [(1, 10), (1, 10), (1, 4)]
    assert phases(Scans(waits), 0) == []


def test_a_further_second_reads_no_snapshot_again() -> None:
    scans = Scans([0.0] * 80)
    past = PastPressure(scans)
    past.read(BEGIN + 65 * NS)
    before = scans.read
    assert past.is_known(BEGIN + 66 * NS)
    assert not past.is_known(BEGIN + 71 * NS)
    past.read(BEGIN + 71 * NS)
    assert scans.read == before + 1


def test_rare_snapshots_make_longer_phases() -> None:
    waits = [at * 30 * 1.0 for at in range(6)]
    scans = Scans(waits, each_s=30)
    past, until_ns = PastPressure(scans), BEGIN + 150 * NS
    past.read(until_ns)
    snapshot = scans.snapshot(5)
    found = past.phases(snapshot, snapshot.locks[0], until_ns)
    assert all(one.share == pytest.approx(0.25) for one in found)
    assert sum(one.duration_s for one in found) == pytest.approx(60)


def test_an_empty_memory_has_no_phases() -> None:
    scans = Scans([])
    past = PastPressure(scans)
    past.read(BEGIN)
    snapshot = Scans([1.0]).snapshot(0)
    assert past.phases(snapshot, snapshot.locks[0], BEGIN) == ()


class NamelessScans(Scans):
    """Without names, the waits of the first second look like waits for work."""

    def snapshot(self, number: int) -> Snapshot:
        whole = super().snapshot(number)
        if number:
            return whole
        idle = tuple(replace(lock, idle_s=lock.wait_s) for lock in whole.locks)
        return replace(whole, locks=idle, names_left=7)


def test_waits_that_seemed_idle_without_names_are_no_pressure_of_the_first_second() -> None:
    scans = NamelessScans([100.0 + second * THREADS / 2 for second in range(10)])
    assert phases(scans, 1) == []
    assert phases(scans, 5) == []
    assert phases(Scans([100.0 + second * THREADS / 2 for second in range(10)]), 5) == [(0.5, 5)]
