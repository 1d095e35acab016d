"""The memory of a listener: ring records and snapshots as a local screen keeps them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace
from support.eventually import PATIENCE_S, until
from support.streams import Mouth, streaming
from support.targets import StartTarget
from unit.builders import scenarios

from locktop.collector.extensions.stream import stream_url
from locktop.collector.extensions.stream.listener import Listener
from locktop.collector.model import Snapshot, TimeLine, WaitRecord
from locktop.collector.recording.history import History
from locktop.collector.recording.time_lines import TimeLineReader
from locktop.collector.sources.attach import attach
from locktop.tui.extensions.stream.listen_feed import ListenFeed
from locktop.tui.feed import PollerFeed

_ALWAYS = (0, 1 << 62)
_THREADS, _PAIRS = 4, 500


@contextmanager
def listening(url: str, history: History) -> Iterator[tuple[str, list[Snapshot]]]:
    """Listen as the screen does, without a screen; give the URL and the published snapshots."""
    listener = Listener(stream_url.parse(url, listens=True))
    feed, published = ListenFeed(listener, history), list[Snapshot]()
    feed.start(published.append, 0.5)
    try:
        yield str(listener.url), published
    finally:
        feed.stop()


@contextmanager
def watched_here(pid: int, history: History) -> Iterator[list[Snapshot]]:
    """Watch a process as the local screen does, without a screen."""
    feed, published = PollerFeed(attach(pid, only_exact=True), history), list[Snapshot]()
    feed.start(published.append, 0.5)
    try:
        yield published
    finally:
        feed.stop()


def test_the_time_line_elsewhere_is_that_of_a_local_screen(
    start_target: StartTarget, tmp_path: Path
) -> None:
    arguments = ("paced_pairs", str(_THREADS), str(_PAIRS), "0", "50", "100")
    target = start_target(*arguments, level="all")
    target.expect("ready")
    here, there = History(), History()
    with (
        listening(f"unix://{tmp_path}/s", there) as (to, published),
        watched_here(target.pid, here),
        streaming(target.pid, to) as sender,
    ):
        until(lambda: bool(there.times_ns() and here.times_ns()), "a snapshot at both ends")
        target.go_on()
        assert target.truth()["pairs"] == _THREADS * _PAIRS
        target.go_on()  # the process ends
        assert sender.wait(PATIENCE_S) == 0
        until(lambda: published[-1].ended, "the last snapshot")
        until(lambda: here.snapshot_at(1 << 62).ended, "the last snapshot here")
    lines = [TimeLineReader(one).read(*_ALWAYS) for one in (here, there)]
    assert [line.lost_records for line in lines] == [0, 0]
    waits = [waits_of(line) for line in lines]
    assert waits[1] == waits[0]
    assert sum(map(len, waits[0].values())) > 10
    found, wanted = (in_order(one) for one in (there, here))
    assert len(found) == len(wanted) >= _THREADS * _PAIRS
    for one, other in zip(found, wanted, strict=True):
        # The rate of the library's clock is known to some digits at each end.
        assert one.wait_ns == pytest.approx(other.wait_ns, rel=0.01, abs=1000)


def test_datagrams_carry_ring_records_too(start_target: StartTarget) -> None:
    """A busy machine may lose some datagrams, but not all."""
    target = start_target("paced_pairs", "2", "1000000", "1000", "50", "100", level="all")
    target.expect("ready")
    target.go_on()
    history = History()
    with (
        listening("udp://127.0.0.1:0", history) as (url, _),
        streaming(target.pid, url, "--rate", "10"),
    ):
        until(lambda: any(one.wait_ns for one in history.records(*_ALWAYS)), "a wait")
        assert history.lost_records(*_ALWAYS) is not None


def key(record: WaitRecord) -> tuple[object, ...]:
    """Return all of a record but its times: each end copies them with a clock of its own."""
    return record.lock, record.kind, record.stack, record.holder, record.site, record.timed_out


def waits_of(line: TimeLine) -> dict[int, list[tuple[object, ...]]]:
    """Return the waits of each thread without their times."""
    return {
        lane.tid: sorted((key(one.record) for one in lane.waits), key=str)
        for lane in line.lanes
        if lane.waits
    }


def in_order(history: History) -> list[WaitRecord]:
    """Return the records by thread, and by all but their times."""
    return sorted(history.records(*_ALWAYS), key=lambda one: (one.tid, str(key(one)), one.wait_ns))


def test_a_long_wait_from_before_the_stream_is_a_moment(
    start_target: StartTarget, tmp_path: Path
) -> None:
    target = start_target("paced_pairs", "2", "1", "0", "100", "1100000", level="all")
    target.expect("ready")
    target.go_on()
    target.truth()
    history = History()
    with (
        listening(f"unix://{tmp_path}/s", history) as (url, _),
        streaming(target.pid, url),
    ):
        until(lambda: bool(history.notables()), "the wait of one second")


def test_a_fault_of_the_memory_ends_no_stream(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*_: object) -> int:
        raise ValueError("no room")

    monkeypatch.setattr(History, "add", fail)
    with listening(f"unix://{tmp_path}/s", History()) as (url, published):
        mouth = Mouth(url)
        for number in range(3):
            mouth.say(replace(scenarios.normal(), duration_s=float(number)))
        until(lambda: published[-1].duration_s == 2.0, "all snapshots")
        mouth.end()
    assert not any("dropped" in note for one in published for note in one.notes)
    wanted = "the past is kept no more: ValueError: no room"
    assert next(one for one in published if one.duration_s == 2.0).notes[-1] == wanted
