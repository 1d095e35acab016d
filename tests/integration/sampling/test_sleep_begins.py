"""The duration of waits that began before locktop attached: a true lower bound."""

from __future__ import annotations

import os
import time
from contextlib import closing

import pytest
from support.eventually import until
from support.targets import StartTarget, Target

from locktop.collector.linux.sleep_clock import SleepClock
from locktop.collector.model import Lock, Snapshot
from locktop.collector.render.documents import snapshot_codec
from locktop.collector.render.text.report import render
from locktop.collector.render.words import units
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.sources.attach import attach
from locktop.collector.sources.sampling.source import SamplingSource
from locktop.tui.views import lock_details, lock_list
from locktop.tui.views.cells import lasting
from locktop.tui.views.styled_line import line_text, unfolded
from locktop.tui.views.table import lay_out

needs_clock = pytest.mark.skipif(
    not os.path.exists("/proc/thread-self/sched"), reason="this kernel does not tell"
)


def first_scan(target: Target) -> tuple[float, Snapshot]:
    """Return the seconds that locktop has looked at a process, and its first snapshot."""
    began = time.monotonic()
    with closing(attach(target.pid)) as source:
        snapshot = source.scan(resolve=True)
    return time.monotonic() - began, snapshot


def catalog_of(snapshot: Snapshot) -> Lock:
    """Return the lock that the writer of starved_update waits for."""
    (lock,) = [lock for lock in snapshot.locks if lock.name == "g_catalog"]
    return lock


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
def test_the_longest_wait_is_no_shorter_than_the_present_one(
    start_unprepared: StartTarget,
) -> None:
    target = start_unprepared("starved_update")
    target.expect("ready")

    snapshots: list[Snapshot] = []

    def is_known() -> bool:
        watched_s, snapshot = first_scan(target)
        snapshots.append(snapshot)
        return catalog_of(snapshot).wait_max_s > 2 * watched_s

    until(is_known, "a wait that is older than the scan")
    snapshot = snapshots[-1]
    lock, index = catalog_of(snapshot), SnapshotIndex(snapshot)
    waits = [thread.waiting_for for thread in snapshot.threads if thread.name == "prices"]
    longest_s = lock.wait_max_s
    assert [wait.duration_s for wait in waits if wait is not None] == [longest_s]
    assert lock.wait_max_is_lower_bound
    row = line_text(lay_out(lock_list.columns(index), 120).line(lock))
    assert f" {lasting(longest_s, True)} " in row
    details = "\n".join(map(line_text, unfolded(lock_details.lock_details(index, lock))))
    assert f"the longest {lasting(longest_s, True)}" in details
    assert f" >{units.duration(longest_s)} " in render(snapshot, width=200)
    entries = {entry["name"]: entry for entry in snapshot_codec.document(snapshot)["locks"]}
    entry = entries["g_catalog"]
    assert (entry["wait_max_s"], entry["wait_max_at_least"]) == (longest_s, True)


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
