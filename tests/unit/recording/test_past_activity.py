"""The activity of the last two minutes, from snapshots that are kept."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace
from unit.builders import records, scenarios

from locktop.collector.model import Kind, Notable, Snapshot, ThreadState, WaitRecord
from locktop.collector.model.locks import WAITS_ALONE, LockRates
from locktop.collector.recording.past_activity import PastActivity

NS = 1_000_000_000
BEGIN = 1_790_000_000 * NS


def snapshot(waits_s: Sequence[float] = (), rate: float = 0.0, pid: int = 7) -> Snapshot:
    threads = tuple(
        records.thread(
            tid, "worker", ThreadState.WAITING, waiting_for=records.wait(1, Kind.MUTEX, wait_s)
        )
        for tid, wait_s in enumerate(waits_s, 1)
    )
    lock = records.lock(1, "g_lock", rates=LockRates(contended=rate))
    idle = records.lock(2, "g_queue", Kind.COND, rates=LockRates(contended=5000.0))
    process = replace(scenarios.empty().process, pid=pid, cpu_share=1.5)
    return replace(
        scenarios.empty(), threads=threads, locks=(lock, idle), process=process, interval_s=0.5
    )


class Scans:
    """Four snapshots in each second, each with as many waiting threads as its number."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.read: list[int] = []

    def times_ns(self) -> list[int]:
        return [BEGIN + number * NS // 4 for number in range(self._count)]

    def snapshot_at(self, time_ns: int) -> Snapshot:
        self.read.append(time_ns)
        return snapshot([1.0] * ((time_ns - BEGIN) * 4 // NS % 8))

    def notables(self) -> Sequence[Notable]:
        return ()

    def records(self, from_ns: int, to_ns: int) -> Sequence[WaitRecord]:
        return ()


def test_a_point_has_the_figures_of_its_snapshot_without_idle_locks() -> None:
    past = PastActivity(None)
    past.add(snapshot((0.5, 2.0), 300.0), BEGIN)
    (point,) = past.points(BEGIN)
    assert (point.waiting, point.longest_s, point.waits_per_s, point.cpus) == (2, 2.0, 300.0, 1.5)
    assert past.missing(BEGIN) == ()


def test_what_is_not_measured_is_no_figure() -> None:
    past = PastActivity(None)
    past.add(replace(snapshot((0.5,)), level="dormant"), BEGIN)
    past.add(replace(snapshot((0.5,)), interval_s=0.0), BEGIN + 1)
    sampled = snapshot((0.5,))
    locks = tuple(replace(lock, rates=WAITS_ALONE) for lock in sampled.locks)
    past.add(replace(sampled, locks=locks), BEGIN + 2)
    dormant, first, from_samples = past.points(BEGIN + 2)
    assert (dormant.waiting, dormant.longest_s, dormant.waits_per_s) == (None, None, None)
    assert (first.waiting, first.waits_per_s, first.cpus) == (1, None, None)
    assert (from_samples.waiting, from_samples.waits_per_s, from_samples.cpus) == (1, None, 1.5)


def test_the_last_two_minutes_are_read_once_and_one_snapshot_of_each_second() -> None:
    scans = Scans(4 * 300)
    past, until_ns = PastActivity(scans), BEGIN + 200 * NS
    past.add(snapshot(), until_ns)
    missing = past.missing(until_ns)
    assert len(missing) == 120
    past.add_points(past.read(missing))
    assert past.missing(until_ns) == []
    assert len(past.missing(until_ns + 3 * NS)) == 3
    points = past.points(until_ns)
    assert len(points) == 121
    assert min(point.time_ns for point in points) >= until_ns - 120 * NS
    assert past.points(until_ns - 60 * NS) == points[:60]


def test_a_moment_far_away_forgets_the_points_before() -> None:
    past = PastActivity(None)
    for second in range(1000):
        past.add(snapshot(), BEGIN + second * NS)
    assert len(past.points(BEGIN + 999 * NS)) == 121
    past.add(snapshot(), BEGIN)
    past.add(snapshot(), BEGIN + 500 * NS)
    assert len(past.points(BEGIN + 500 * NS)) == 1


def test_another_process_has_no_part_of_the_one_before() -> None:
    past = PastActivity(None)
    past.add(snapshot(pid=7), BEGIN)
    past.add(snapshot(pid=8), BEGIN + NS)
    assert [point.pid for point in past.points(BEGIN + NS)] == [8]
