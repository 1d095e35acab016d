"""The duration of waits that began before locktop attached: a true lower bound."""

from __future__ import annotations

import os
import time
from contextlib import closing

import pytest
from support.eventually import until
from support.targets import StartTarget, Target

from locktop.collector.linux.sleep_clock import SleepClock
from locktop.collector.model import Snapshot
from locktop.collector.render.text.report import render
from locktop.collector.sources.attach import attach
from locktop.collector.sources.sampling.source import SamplingSource

needs_clock = pytest.mark.skipif(
    not os.path.exists("/proc/thread-self/sched"), reason="this kernel does not tell"
)


def first_scan(target: Target) -> tuple[float, Snapshot]:
    """Return the seconds that locktop has looked at a process, and its first snapshot."""
    began = time.monotonic()
    with closing(attach(target.pid)) as source:
        snapshot = source.scan(resolve=True)
    return time.monotonic() - began, snapshot


@needs_clock
def test_a_first_scan_knows_more_of_a_wait_than_it_has_watched(
    start_unprepared: StartTarget,
) -> None:
    before = time.monotonic()
    target = start_unprepared("starved_update")
    target.expect("ready")

    def is_known() -> bool:
        watched_s, snapshot = first_scan(target)
        (writer,) = [thread for thread in snapshot.threads if thread.name == "prices"]
        (main,) = [thread for thread in snapshot.threads if thread.tid == target.pid]
        assert writer.waiting_for is not None
        assert main.now is not None
        for duration in (writer.waiting_for, main.now):
            assert duration.duration_s <= time.monotonic() - before
            assert duration.is_lower_bound
        return min(writer.waiting_for.duration_s, main.now.duration_s) > watched_s

    until(is_known, "waits that are older than the scan")


@needs_clock
def test_an_alert_sees_the_same_duration(start_unprepared: StartTarget) -> None:
    before = time.monotonic()
    target = start_unprepared("starved_update")
    target.expect("ready")

    def is_known() -> bool:
        began = time.monotonic()
        with closing(SamplingSource(target.pid)) as source:
            source.scan()
            waits = source.waits()
            assert waits is not None
            longest_s = max(wait.duration_s for wait in waits.values())
        assert longest_s <= time.monotonic() - before
        return longest_s > time.monotonic() - began

    until(is_known, "a wait that is older than the source")


def test_without_a_clock_the_report_says_that_it_only_watched(
    start_unprepared: StartTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SleepClock, "asleep_since", lambda *_: None)
    target = start_unprepared("starved_update")
    target.expect("ready")
    watched_s, snapshot = first_scan(target)
    (writer,) = [thread for thread in snapshot.threads if thread.name == "prices"]
    assert writer.waiting_for is not None
    assert writer.waiting_for.duration_s <= watched_s
    text = " ".join(render(snapshot, width=80).split())
    assert "for at least" in text
    assert "`locktop check` watches for 10 s" in text
