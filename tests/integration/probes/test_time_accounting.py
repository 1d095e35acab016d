"""Where the time of real threads went, against the clocks that the threads have themselves.

The program reads its clocks before and after each look, so what lies between two looks is at least
what it read between them and at most what it read around them, however busy the machine is.
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

from locktop.collector.export import snapshot_codec
from locktop.collector.export.text import report
from locktop.collector.linux import procfs
from locktop.collector.model import Snapshot, Thread, TimeSplit
from locktop.collector.sources.attach import attach
from locktop.collector.sources.base import Source

PARTS = ("cpu", "runnable", "contended", "idle", "disk", "other")
#: The kernel counts a running thread up to the last tick: 100 a second at least.
TICK_S = 0.01
INTERVAL_S = 0.5
ALL = (
    "burns", "pinned-0", "pinned-1", "sleeps", "fights-0", "fights-1", "waits", "idle", "writes",
    "spins",
)  # fmt: skip


class Looked:
    """Two looks, and what the program said around each."""

    def __init__(self, target: Target, source: Source, truth: dict[str, Any]) -> None:
        self._said = [truth]
        source.scan()
        self._hear(target)
        time.sleep(INTERVAL_S)
        self._hear(target)
        self.snapshot = source.scan(resolve=True)
        self._hear(target)

    def _hear(self, target: Target) -> None:
        target.go_on()
        self._said.append(target.truth())

    def thread(self, name: str) -> Thread:
        (found,) = (thread for thread in self.snapshot.threads if thread.name == name)
        return found

    def time(self, name: str) -> TimeSplit:
        found = self.thread(name).time
        assert found is not None
        return found

    def bounds(self, name: str, figure: str) -> tuple[float, float]:
        """The least and the largest share that a figure of the program's allows."""
        before, first, last, after = self._said
        own = [one["threads"][name][figure] for one in self._said]
        longest_s = after["after"] - before["before"]
        shortest_s = last["before"] - first["after"]
        least = max(0.0, own[2] - own[1] - TICK_S) / longest_s
        return least, min(1.0, (own[3] - own[0] + TICK_S) / shortest_s)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("disk") / "scratch"


@pytest.fixture
def scanned(request: Any, start_target: StartTarget, scratch: Path) -> Iterator[Looked]:
    target = start_target("time_uses", scratch, *request.param)
    truth = target.truth()
    with closing(attach(target.pid)) as source:
        yield Looked(target, source, truth)


def of(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("scanned", [names], indirect=True, ids=["-".join(names)[:20]])


def assert_within(share: float, bounds: tuple[float, float]) -> None:
    assert bounds[0] - 1e-6 <= share <= bounds[1] + 1e-6, (share, bounds)


@of(*ALL)
def test_the_parts_of_every_thread_add_up(scanned: Looked) -> None:
    assert len(scanned.snapshot.threads) == len(ALL) + 1
    for thread in scanned.snapshot.threads:
        assert thread.time is not None
        shares = [getattr(thread.time, part) for part in PARTS]
        assert sum(shares) == pytest.approx(1.0, abs=1e-9), thread.name
        assert min(shares) >= 0.0
        assert thread.cpu_share == thread.time.cpu


@of(*ALL)
def test_each_was_on_a_cpu_and_in_the_queue_as_long_as_it_says(scanned: Looked) -> None:
    for name in ALL:
        assert_within(scanned.time(name).cpu, scanned.bounds(name, "cpu_s"))
        # Of one that still stands in the queue the kernel tells later.
        queued = scanned.time(name).runnable
        if name in ("sleeps", "waits", "idle") and queued < 1.0:
            assert_within(queued, scanned.bounds(name, "queued_s"))


@of("pinned-0", "pinned-1")
def test_two_that_may_use_one_cpu_take_turns(scanned: Looked) -> None:
    both = [scanned.time(name) for name in ("pinned-0", "pinned-1")]
    # Clocks of two threads are not read at one moment.
    assert sum(split.cpu for split in both) <= 1.0 + 4 * TICK_S / INTERVAL_S, "there is one"
    for split in both:
        # A turn that goes on is not counted yet, and it is long where others want that CPU, too.
        assert split.runnable > 0.05
        assert split.contended == split.idle == 0.0


@of("waits", "idle", "sleeps")
def test_sleep_is_told_apart(scanned: Looked) -> None:
    assert scanned.time("waits").contended > 0.95
    assert scanned.time("idle").idle > 0.95
    sleeper = scanned.time("sleeps")
    assert sleeper.contended == sleeper.idle == 0.0
    assert sleeper.other + sleeper.runnable + sleeper.cpu == pytest.approx(1.0, abs=1e-6)


@of("fights-0", "fights-1")
def test_who_fights_for_a_lock_waits_while_the_other_one_sleeps_with_it(scanned: Looked) -> None:
    first, second = scanned.time("fights-0"), scanned.time("fights-1")
    assert first.contended + second.contended > 0.0
    assert first.idle == second.idle == 0.0
    # One of the two has it nearly always, and sleeps; both never wait at once for long.
    assert first.contended + second.contended < 1.3


@of("spins")
def test_who_spins_for_a_lock_is_on_a_cpu(scanned: Looked) -> None:
    """Or in the queue for one; but it never sleeps, however long it waits."""
    thread, time = scanned.thread("spins"), scanned.time("spins")
    assert thread.waiting_for is not None
    assert thread.wait_share > 0.95
    assert time.contended == 0.0
    assert time.cpu + time.runnable > 0.5
    assert_within(time.cpu, scanned.bounds("spins", "cpu_s"))


@of("writes")
def test_writes_to_a_disk(scanned: Looked) -> None:
    """Where the kernel counts waits for disks there are some, else that is said."""
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
def test_it_is_in_json_and_on_the_page(scanned: Looked) -> None:
    snapshot = scanned.snapshot
    threads = {one["name"]: one for one in snapshot_codec.document(snapshot)["threads"]}
    told = threads["burns"]["time"]
    assert {part: told[part] for part in PARTS} == {
        part: getattr(scanned.time("burns"), part) for part in PARTS
    }
    assert threads["burns"]["switches"]["involuntary"] >= 0
    lines = report.render(snapshot).splitlines()
    head = next(n for n, line in enumerate(lines) if line.startswith("WHERE THE TIME OF THREADS"))
    assert lines[head + 1].split()[:2] == ["on", "cpu"]
    table = "\n".join(lines[head + 2 : head + 5])
    assert "(burns)" in table
    assert "(waits)" in table


def test_one_scan_has_no_interval(start_target: StartTarget, scratch: Path) -> None:
    target = start_target("time_uses", scratch, "burns")
    target.truth()
    document = tool.snapshot(target.pid)
    assert [thread["time"] for thread in document["threads"]] == [None, None]
    assert all(thread["switches"] for thread in document["threads"])
    document = tool.snapshot(target.pid, "-d", "0.3")
    assert all(thread["time"] for thread in document["threads"])


def test_a_dormant_library_counts_no_waits(start_target: StartTarget, scratch: Path) -> None:
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
    assert times["waits"].contended > 0.95, "that wait began before"


def followed(source: Source, name: str) -> Snapshot:
    tid = next(thread.tid for thread in source.scan().threads if thread.name == name)
    source.follow(tid)
    source.scan()
    time.sleep(0.2)
    return source.scan()


def test_only_who_is_followed_is_counted(start_target: StartTarget, scratch: Path) -> None:
    target = start_target("time_uses", scratch, "burns", "sleeps")
    target.truth()
    with closing(attach(target.pid)) as source:
        seen = followed(source, "burns")
        asked = {thread.name: thread for thread in seen.threads if thread.counters}
        assert list(asked) == ["burns"]
        assert asked["burns"].switches is not None
        assert all(one.switches is None for one in seen.threads if one.name != "burns")
        counters = asked["burns"].counters
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
