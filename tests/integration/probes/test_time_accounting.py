"""The time split of real threads, against the clocks that the threads read themselves.

The program reads its clocks before and after each scan. The time between the inner readings is a
lower bound of the time between the scans. The outer readings give the upper bound.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support import tool
from support.targets import StartTarget, Target

from locktop.collector.linux import procfs
from locktop.collector.model import Snapshot, Thread, TimeSplit
from locktop.collector.render.documents import snapshot_codec
from locktop.collector.render.text import report
from locktop.collector.sources.attach import attach
from locktop.collector.sources.base import Source

PARTS = ("cpu", "runnable", "contended", "idle", "disk", "other")
#: The kernel counts a running thread up to its last tick: 100 ticks a second at least.
TICK_S = 0.01
INTERVAL_S = 0.5
ALL = (
    "burns", "pinned-0", "pinned-1", "sleeps", "fights-0", "fights-1", "waits", "idle", "writes",
    "spins",
)  # fmt: skip


class ScannedTwice:
    """Two scans, and the program's readings of its clocks around each scan."""

    def __init__(self, target: Target, source: Source, truth: dict[str, Any]) -> None:
        self.readings = [truth]
        source.scan()
        self.read_clocks(target)
        time.sleep(INTERVAL_S)
        self.read_clocks(target)
        self.snapshot = source.scan(resolve=True)
        self.read_clocks(target)

    def read_clocks(self, target: Target) -> None:
        target.go_on()
        self.readings.append(target.truth())

    @property
    def shortest_s(self) -> float:
        """A lower bound of the time between the scans."""
        return float(self.readings[2]["before"] - self.readings[1]["after"])

    @property
    def longest_s(self) -> float:
        """An upper bound of the time between the scans."""
        return float(self.readings[3]["after"] - self.readings[0]["before"])

    def thread(self, name: str) -> Thread:
        (found,) = (thread for thread in self.snapshot.threads if thread.name == name)
        return found

    def time(self, name: str) -> TimeSplit:
        found = self.thread(name).time
        assert found is not None
        return found

    def bounds(self, name: str, figure: str) -> tuple[float, float]:
        """Return the smallest and the largest share that the program's clocks allow."""
        own = [one["threads"][name][figure] for one in self.readings]
        least = max(0.0, own[2] - own[1] - TICK_S) / self.longest_s
        return least, min(1.0, (own[3] - own[0] + TICK_S) / self.shortest_s)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("disk") / "scratch"


@pytest.fixture
def scanned(request: Any, start_target: StartTarget, scratch: Path) -> Iterator[ScannedTwice]:
    target = start_target("time_uses", scratch, *request.param)
    truth = target.truth()
    with closing(attach(target.pid)) as source:
        yield ScannedTwice(target, source, truth)


def of(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("scanned", [names], indirect=True, ids=["-".join(names)[:20]])


def assert_within(share: float, bounds: tuple[float, float]) -> None:
    assert bounds[0] - 1e-6 <= share <= bounds[1] + 1e-6, (share, bounds)


@of(*ALL)
def test_the_parts_of_every_thread_add_up(scanned: ScannedTwice) -> None:
    assert len(scanned.snapshot.threads) == len(ALL) + 1
    for thread in scanned.snapshot.threads:
        assert thread.time is not None
        shares = [getattr(thread.time, part) for part in PARTS]
        assert sum(shares) == pytest.approx(1.0, abs=1e-9), thread.name
        assert min(shares) >= 0.0
        assert thread.cpu_share == thread.time.cpu


@of(*ALL)
def test_the_cpu_time_and_the_queue_time_are_those_of_the_program(scanned: ScannedTwice) -> None:
    for name in ALL:
        assert_within(scanned.time(name).cpu, scanned.bounds(name, "cpu_s"))
        # The kernel counts the time in the queue only at its end.
        queued = scanned.time(name).runnable
        if name in ("sleeps", "waits", "idle") and queued < 1.0:
            assert_within(queued, scanned.bounds(name, "queued_s"))


@of("pinned-0", "pinned-1")
def test_two_threads_on_one_cpu_share_it_and_queue_for_it(scanned: ScannedTwice) -> None:
    both = [scanned.time(name) for name in ("pinned-0", "pinned-1")]
    # The scan reads the clocks of the two threads one after the other.
    cpu_s = sum(split.cpu for split in both) * scanned.shortest_s
    assert cpu_s <= scanned.longest_s + 4 * TICK_S, "the threads have one CPU together"
    for split in both:
        # The kernel does not count a queue time that lasts, which is long on a busy machine.
        assert split.runnable > 0.05
        assert split.contended == split.idle == 0.0


@of("waits", "idle", "sleeps")
def test_contended_sleep_idle_sleep_and_other_sleep_are_distinguished(
    scanned: ScannedTwice,
) -> None:
    assert scanned.time("waits").contended > 0.95
    assert scanned.time("idle").idle > 0.95
    sleeper = scanned.time("sleeps")
    assert sleeper.contended == sleeper.idle == 0.0
    assert sleeper.other + sleeper.runnable + sleeper.cpu == pytest.approx(1.0, abs=1e-6)


@of("fights-0", "fights-1")
def test_of_two_threads_that_sleep_with_a_lock_one_waits(scanned: ScannedTwice) -> None:
    first, second = scanned.time("fights-0"), scanned.time("fights-1")
    assert first.contended + second.contended > 0.0
    assert first.idle == second.idle == 0.0
    # One of the two nearly always holds the lock and sleeps, so both rarely wait at once.
    assert first.contended + second.contended < 1.3


@of("spins")
def test_a_spinning_thread_is_on_a_cpu_or_in_its_queue(scanned: ScannedTwice) -> None:
    """Such a thread waits for a lock and never sleeps."""
    thread, time = scanned.thread("spins"), scanned.time("spins")
    assert thread.waiting_for is not None
    assert thread.wait_share > 0.95
    assert time.contended == 0.0
    assert time.cpu + time.runnable > 0.5
    assert_within(time.cpu, scanned.bounds("spins", "cpu_s"))


@of("writes")
def test_waits_for_a_disk_are_measured_or_said_to_be_unknown(scanned: ScannedTwice) -> None:
    """Not every kernel counts waits for disks."""
    time = scanned.time("writes")
    counts, of_all = procfs.counts_disk_waits()
    if counts and of_all:
        assert "disk" not in time.unknown
    if not counts:
        assert "disk" in time.unknown
        page = report.render(scanned.snapshot)
        assert "the kernel does not count waits for disks" in " ".join(page.split())
    assert time.contended == time.idle == 0.0


@of("burns", "waits")
def test_json_and_text_report_have_the_time_split(scanned: ScannedTwice) -> None:
    snapshot = scanned.snapshot
    threads = {one["name"]: one for one in snapshot_codec.document(snapshot)["threads"]}
    split = threads["burns"]["time"]
    assert {part: split[part] for part in PARTS} == {
        part: getattr(scanned.time("burns"), part) for part in PARTS
    }
    assert threads["burns"]["switches"]["involuntary"] >= 0
    lines = report.render(snapshot).splitlines()
    head = next(n for n, line in enumerate(lines) if line.startswith("WHERE THE TIME OF THREADS"))
    assert lines[head + 1].split()[:2] == ["on", "cpu"]
    table = "\n".join(lines[head + 2 : head + 5])
    assert "(burns)" in table
    assert "(waits)" in table


def test_a_snapshot_without_an_interval_has_no_time_split(
    start_target: StartTarget, scratch: Path
) -> None:
    target = start_target("time_uses", scratch, "burns")
    target.truth()
    document = tool.snapshot(target.pid)
    assert [thread["time"] for thread in document["threads"]] == [None, None]
    assert all(thread["switches"] for thread in document["threads"])
    document = tool.snapshot(target.pid, "-d", "0.3")
    assert all(thread["time"] for thread in document["threads"])


def test_with_a_dormant_library_the_waits_are_unknown(
    start_target: StartTarget, scratch: Path
) -> None:
    target = start_target("time_uses", scratch, "waits", "burns")
    target.truth()
    with closing(attach(target.pid)) as source:
        source.scan()
        source.set_level("dormant")
        source.scan()
        time.sleep(0.1)
        seen = source.scan()
    times = {thread.name: thread.time for thread in seen.threads}
    assert times["burns"] is not None
    assert {"contended", "idle"} <= set(times["burns"].unknown)
    assert times["waits"] is not None
    assert times["waits"].contended > 0.95, "this wait began before the library was dormant"


def followed(source: Source, name: str) -> Snapshot:
    tid = next(thread.tid for thread in source.scan().threads if thread.name == name)
    source.follow(tid)
    source.scan()
    time.sleep(0.2)
    return source.scan()


def test_only_the_followed_thread_has_perf_counters(
    start_target: StartTarget, scratch: Path
) -> None:
    target = start_target("time_uses", scratch, "burns", "sleeps")
    target.truth()
    with closing(attach(target.pid)) as source:
        seen = followed(source, "burns")
        counted = {thread.name: thread for thread in seen.threads if thread.counters}
        assert list(counted) == ["burns"]
        assert counted["burns"].switches is not None
        assert all(one.switches is None for one in seen.threads if one.name != "burns")
        counters = counted["burns"].counters
        assert counters is not None
        figures = {one.name: one for one in counters.counters}
        if figures["task-clock"].total is not None:
            assert 0.0 < figures["task-clock"].total <= counters.duration_s + 0.01
        other = followed(source, "sleeps")
        assert [one.name for one in other.threads if one.counters] == ["sleeps"]
        source.follow(0)
        assert all(one.counters is None for one in source.scan().threads)
        source.follow(1 << 22)  # no thread has such an id
        assert all(one.counters is None for one in source.scan().threads)
