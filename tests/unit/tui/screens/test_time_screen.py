"""The screens over time: what is drawn while they read, and the sums of a busy program."""

from __future__ import annotations

import re
import threading

import pytest
from msgspec.structs import replace
from unit.builders import records
from unit.builders.time_lines import FixedPast, at, relay
from unit.builders.time_screens import live

from locktop.collector.model import Kind, Snapshot, WaitRecord
from locktop.tui.screens.timeline import TimelineScreen


async def test_the_newest_moment_is_drawn_only_when_it_was_read() -> None:
    past, may_read = relay(), threading.Event()
    async with live(past) as screen:
        await screen.open("T")
        before, read, view = screen.lines[2:], past.records, screen.app.screen
        assert isinstance(view, TimelineScreen)

        def slowly(from_ns: int, to_ns: int) -> list[WaitRecord]:
            if threading.current_thread() is not threading.main_thread():
                may_read.wait(60.0)
            return read(from_ns, to_ns)

        past.records = slowly  # type: ignore[method-assign]
        newest = past.snapshots[at(10_500)] = replace(past.snapshot_at(at(0)), duration_s=5000.0)
        try:
            screen.clock[0] += 10.0
            view.show_snapshot(newest)
            await screen.pilot.pause()
            assert "reading" in screen.status
            assert screen.lines[2:] == before, "an empty picture would deny the waits"
        finally:
            may_read.set()
        await screen.until(screen.has_read)


def busy_past(steps: int = 10) -> FixedPast:
    """Return a past that lost nearly all records: 30 ms were waited in each step of 100 ms."""
    base = relay().snapshot_at(at(0))
    names, scans = ("g_shards[0].mu", "g_shards[1].mu", "journal"), {}
    for step in range(steps + 1):
        waited_s = step * 0.03
        locks = tuple(
            records.lock(number + 1, name, wait_s=waited_s / (number + 1))
            for number, name in enumerate(names)
        )
        threads = tuple(replace(one, wait_s={Kind.MUTEX: waited_s}) for one in base.threads)
        scans[at(step * 100)] = replace(
            base,
            locks=locks,
            threads=threads,
            lost_events=step * 9000,
            duration_s=5.0 + step / 10,
        )
    return FixedPast(scans)


@pytest.mark.parametrize("key", ["T", "H"])
async def test_few_scans_draw_the_cells_and_a_bar_never_stands_alone(key: str) -> None:
    may_read_any, may_read_all, read = threading.Event(), threading.Event(), set[int]()

    class SlowPast(FixedPast):
        def snapshot_at(self, time_ns: int) -> Snapshot:
            if threading.current_thread() is not threading.main_thread():
                read.add(time_ns)
                (may_read_any if len(read) < 20 else may_read_all).wait(60.0)
            return super().snapshot_at(time_ns)

    fast = busy_past(steps=600)
    async with live(SlowPast(fast.snapshots)) as screen:
        try:
            await screen.keys(key)
            await screen.until(lambda: re.search(r"reading +0%", screen.status) is not None)
            assert "A few scans make the first picture." in screen.text
            may_read_any.set()
            await screen.until(lambda: "WAITED" in screen.text)
            assert re.search(r"reading .*\d%", screen.status)
            assert " few scans yet " in screen.text
            assert "60.0s up to now" in screen.text
            if key == "T":
                assert screen.lane("worker-1").endswith(" 18.0s")
            else:
                assert screen.lane("journal").endswith(" 6.00s")
        finally:
            may_read_any.set()
            may_read_all.set()
        await screen.until(screen.has_read)
        assert "few scans" not in screen.text


async def test_cells_of_counters_are_marked_and_have_no_single_waits() -> None:
    async with live(busy_past()) as screen:
        await screen.open("T")
        assert "┄ sums, no single waits" in screen.text
        assert "┄┄┄┄┄┄" in screen.text
        assert screen.lane("worker-1").endswith(" 300ms")
        assert "exact sums of counters" in screen.text
        assert "no wait here" not in screen.text
        await screen.keys("N")
        await screen.says("No single wait is known before this")


async def test_the_heat_map_folds_a_class_of_locks_which_enter_opens() -> None:
    async with live(busy_past()) as screen:
        await screen.open("H")
        assert re.search(r"▸ \S+ x2 ", screen.text)
        assert len(screen.lanes.visible_ids) == 2
        assert "450ms" in screen.lanes.current_text
        assert "exact sums of counters; c: callers" in screen.text
        await screen.keys("enter")
        assert len(screen.lanes.visible_ids) == 4
        assert "▾" in screen.text
        await screen.keys("down")
        assert "300ms" in screen.lanes.current_text
        await screen.keys("up", "enter")
        assert len(screen.lanes.visible_ids) == 2
        await screen.keys("c")
        await screen.until(lambda: "counted over 1.00s" in screen.text)


async def test_the_filter_of_the_heat_map_searches_in_closed_classes() -> None:
    async with live(busy_past()) as screen:
        await screen.open("H")
        await screen.keys("slash", *"[1]", "enter")
        assert len(screen.lanes.visible_ids) == 2
        assert "150ms" in screen.text
        assert "journal" not in screen.text


async def test_parts_of_a_second_leave_counted_time_out() -> None:
    async with live(busy_past()) as screen:
        await screen.open("H")
        await screen.keys("o")
        assert "Parts of a second, g_shards[].mu" in screen.text
        assert "no waits" in screen.text
