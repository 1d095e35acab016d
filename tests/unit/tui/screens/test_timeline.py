"""The time line and the heat map driven by keys, over a past that the test builds."""

from __future__ import annotations

import asyncio
import re
import threading

from msgspec.structs import replace
from support.feed import HandFeed
from unit.builders.time_lines import FixedPast, at, relay
from unit.builders.time_screens import Live, live
from unit.builders.waits import wait, waiting

from locktop.collector.model import Notable, NotableKind, WaitRecord
from locktop.collector.recording.time_lines import TimeLineReader
from locktop.tui.app import LocktopApp
from locktop.tui.screens.call_tree import CallTreeScreen
from locktop.tui.screens.difference import DifferenceScreen
from locktop.tui.screens.heat_map import HeatMapScreen
from locktop.tui.screens.monitor import MonitorScreen
from locktop.tui.screens.timeline import TimelineScreen


async def test_the_time_line_of_an_ended_process_has_an_end_and_no_now() -> None:
    past = relay()
    async with live(past) as screen:
        await screen.open("T")
        assert "10.0s up to now" in screen.text
        await screen.show(replace(past.snapshot_at(past.times_ns()[-1]), ended=True))
        await screen.says("10.0s up to the end")
        await screen.keys("plus", "less_than_sign")
        assert "5.00s up to 2.50s before the end" in screen.text


async def test_a_key_opens_the_time_line_and_escape_closes_it() -> None:
    async with live() as screen:
        await screen.open("T")
        assert isinstance(screen.app.screen, TimelineScreen)
        assert "time line  10.0s up to now" in screen.text
        assert screen.lane("worker-1").endswith(" 3.00s")
        assert screen.lane("logger").endswith(" 50.0ms")
        assert "a journal  b cache" in screen.text
        await screen.keys("escape")
        assert isinstance(screen.app.screen, MonitorScreen)
        assert "Locks by" in screen.text


async def test_a_key_switches_between_time_line_and_heat_map_with_the_same_view() -> None:
    async with live() as screen:
        await screen.open("T")
        await screen.keys("plus", "left", "left")
        first = screen.app.screen
        assert isinstance(first, TimelineScreen)
        await screen.open("H")
        second = screen.app.screen
        assert isinstance(second, HeatMapScreen)
        assert second.view == first.view
        await screen.open("T")
        assert isinstance(screen.app.screen, TimelineScreen)
        await screen.keys("escape")
        assert isinstance(screen.app.screen, MonitorScreen)


async def test_no_line_is_wider_than_the_terminal() -> None:
    for size in ((80, 24), (200, 60), (60, 15)):
        async with live(size=size) as screen:
            await screen.open("T")
            assert max(len(line) for line in screen.lines) <= size[0]
            await screen.keys("v", "plus", "n")
            assert max(len(line) for line in screen.lines) <= size[0]


async def test_events_and_hand_overs_are_found_by_keys() -> None:
    async with live() as screen:
        await screen.open("T")
        await screen.keys("N")
        assert "▼ 03:12:54.900" in screen.text.replace(clock(screen), "03:12:54")
        assert "worker-1 waited 60.0 ms for mutex journal" in screen.text
        assert "worker-0 had it for 60.0 ms of the 60.0 ms" in screen.text
        assert screen.text.index("worker-0 had it") < screen.text.index("f released by worker-0")
        assert screen.lane("worker-1").startswith("┌▶")
        assert screen.lane("worker-0").startswith("└─")
        await screen.keys("f")
        assert screen.lanes.current == 4712
        assert "F woke worker-1 0 after the release" in screen.text
        await screen.keys("F")
        assert screen.lanes.current == 4713
        await screen.keys("n")
        await screen.says("No wait after this.")


def clock(screen: Live) -> str:
    """The hour, minute and second of the cursor: the time zone of the machine is not known."""
    return screen.text.split("▼ ", 1)[1][:8]


async def test_the_cell_under_the_cursor_has_exact_figures_and_a_stack() -> None:
    async with live(size=(120, 40)) as screen:
        await screen.open("T")
        await screen.keys("plus", "plus", "plus", "N")
        assert "waits journal" in screen.text
        assert "cache_get" in screen.text
        assert "serve_one" in screen.text


async def test_letters_name_the_locks() -> None:
    async with live() as screen:
        await screen.open("T")
        await screen.keys("v")
        assert set(screen.lane("worker-1")[16:74]) <= set("aA═~─ ")
        assert "b" in screen.lane("logger")
        await screen.keys("v")
        assert "▁" in screen.lane("logger")


async def test_zoom_and_pan_move_the_window() -> None:
    async with live(relay(60)) as screen:
        await screen.open("T")
        assert "60.0s up to now" in screen.text
        await screen.keys("plus")
        assert "30.0s up to now" in screen.text
        await screen.keys("a")
        assert "60.0s up to now" in screen.text
        await screen.keys("plus", "plus")
        assert "15.0s up to now" in screen.text
        await screen.keys("less_than_sign")
        assert "15.0s up to 7.50s before now" in screen.text
        await screen.keys("home")
        assert "15.0s up to 45.0s before now" in screen.text
        await screen.keys("end")
        assert "15.0s up to now" in screen.text


async def test_the_first_line_has_the_cursor_at_any_width() -> None:
    """The length of a cell and the process give way."""
    for width in (80, 60, 40):
        async with live(relay(60), size=(width, 24)) as screen:
            await screen.open("T")
            await screen.keys("plus", "home")
            await screen.until(screen.has_read)
            first = screen.status
            assert re.search(r"30\.0s.*  ▼ \d\d:\d\d:\d\d\.\d{3}$", first), first


async def test_a_part_that_is_not_read_yet_is_said_to_be_missing() -> None:
    past, may_read = relay(120), threading.Event()
    async with live(past) as screen:
        await screen.open("T")
        read = past.records

        def slowly(from_ns: int, to_ns: int) -> list[WaitRecord]:
            may_read.wait(60.0)
            return read(from_ns, to_ns)

        past.records = slowly  # type: ignore[method-assign]
        try:
            await screen.keys("a")
            assert re.search(r"reading +\d+%", screen.status)
        finally:
            may_read.set()
        await screen.until(lambda: "reading" not in screen.status)
        assert "120s up to now" in screen.text


async def test_a_closed_screen_does_not_hold_up_the_next_one() -> None:
    began, may_read, readings = threading.Event(), threading.Event(), [0]

    class SlowPast(FixedPast):
        def records(self, from_ns: int, to_ns: int) -> list[WaitRecord]:
            readings[0] += 1
            began.set()
            may_read.wait(60.0)
            return super().records(from_ns, to_ns)

    fast = relay()
    async with live(SlowPast(fast.snapshots, fast.found)) as screen:
        try:
            for key in ("T", "H", "T"):
                await screen.keys(key)
                await asyncio.to_thread(began.wait, 60.0)
                await screen.keys("escape")
            await screen.keys("H")
        finally:
            may_read.set()
        await screen.until(lambda: "WAITED" in screen.text and screen.has_read())
    # One of the first screen, which counts, and two of the last for each of its pictures.
    assert readings == [5]


async def test_the_heat_map_tells_of_lost_records() -> None:
    past = relay(1)
    times = past.times_ns()
    past.snapshots[times[-1]] = replace(past.snapshot_at(times[-1]), lost_events=123)
    async with live(past) as screen:
        await screen.open("H")
        assert " 123 records lost " in screen.text


async def test_enter_shows_the_moment_on_the_monitor() -> None:
    async with live() as screen:
        await screen.open("T")
        await screen.keys("home")
        await screen.keys("right", "right", "enter")
        monitor = screen.app.screen
        assert isinstance(monitor, MonitorScreen)
        assert monitor.past.time_ns == at(0)


async def test_an_alert_is_one_key_away() -> None:
    past = relay()
    past.add_notable(Notable(at(3000), NotableKind.WAIT, "worker-0 waited 4 s for journal"))
    async with live(past) as screen:
        await screen.open("T")
        await screen.keys("left_curly_bracket")
        assert "long wait: worker-0 waited 4 s for journal" in screen.text
        assert "▼" in screen.text
        await screen.keys("left_curly_bracket")
        await screen.says("No alert or mark before this.")


async def test_the_filter_and_the_key_for_idle_threads() -> None:
    past = relay()
    async with live(past) as screen:
        await screen.open("T")
        await screen.keys("slash", *"logger", "enter")
        assert screen.lanes.count() == 1
        await screen.keys("escape", "escape")
        if isinstance(screen.app.screen, TimelineScreen):
            assert screen.lanes.count() == 3


async def test_new_snapshots_move_a_time_line_at_its_end() -> None:
    past = relay()
    async with live(past) as screen:
        await screen.open("T")
        newest = past.snapshots[at(10_500)] = replace(past.snapshot_at(at(0)), duration_s=5000.0)
        await screen.show(newest, after_s=10.0)
        view = screen.app.screen
        assert isinstance(view, TimelineScreen)
        await screen.until(lambda: view.window.to_ns == at(10_500))
        assert "10.5s up to now" in screen.text


async def test_without_a_memory_there_is_a_message() -> None:
    feed = HandFeed(relay().snapshot_at(at(0)))
    app = LocktopApp(feed, "night", environ={"TERM": "xterm-256color"})
    async with app.run_test(size=(80, 24)) as pilot:
        screen = Live(app, pilot, feed, [0.0])
        await screen.settle()
        await screen.keys("T")
        await screen.says("Nothing is kept")


async def test_a_memory_of_one_snapshot_has_no_time_line() -> None:
    past = relay(1)
    past.snapshots = {at(0): past.snapshot_at(at(0))}
    async with live(past) as screen:
        await screen.keys("H")
        await screen.says("there is no second one yet")


async def test_the_heat_map_has_a_row_for_each_lock_or_thread() -> None:
    async with live() as screen:
        await screen.open("H")
        assert isinstance(screen.app.screen, HeatMapScreen)
        assert screen.lane("journal").endswith("5.94s")
        assert "worker-0" not in screen.text
        await screen.keys("v")
        assert screen.lane("worker-1").endswith("3.00s")
        assert max(len(line) for line in screen.lines) <= 80


async def test_parts_of_a_second_are_rows() -> None:
    async with live() as screen:
        await screen.open("H")
        await screen.keys("down", "o")
        assert "Parts of a second, cache" in screen.text
        rows = [line for line in screen.lines if line.startswith("  from ")]
        assert len(rows) == 10
        assert rows[5].endswith("50.0ms")
        assert all(row.endswith(" -") for number, row in enumerate(rows) if number != 5)
        await screen.keys("o")
        assert "Parts of a second, all locks" in screen.text
        await screen.keys("o")
        assert screen.lane("journal")


async def test_two_keys_choose_a_span_and_one_shows_its_callers() -> None:
    async with live() as screen:
        await screen.open("H")
        await screen.keys("home", "m", "right", "right", "m")
        assert " + 526ms  c its callers" in screen.text
        assert "AA▼" in screen.text
        await screen.keys("c")
        await screen.until(lambda: isinstance(screen.app.screen, CallTreeScreen))
        await screen.until(lambda: "mutex journal" in screen.text)
        await screen.keys("escape")
        assert isinstance(screen.app.screen, HeatMapScreen)


async def test_a_second_span_is_compared_with_the_first() -> None:
    async with live() as screen:
        await screen.open("H")
        await screen.keys("d")
        await screen.says("Choose two spans")
        await screen.keys("home", "m", "m", "right", "right", "m", "m", "d")
        await screen.until(lambda: isinstance(screen.app.screen, DifferenceScreen))
        await screen.until(lambda: "MORE/s" in screen.text)
        assert "mutex cache" in screen.text
        assert "Waited per second" in screen.text
        await screen.keys("slash", *"cache_put", "enter")
        assert "mutex journal" not in screen.text
        await screen.keys("escape", "escape")
        await screen.until(lambda: isinstance(screen.app.screen, HeatMapScreen))


async def test_callers_that_come_late_do_not_cover_another_screen() -> None:
    past, may_read = relay(), threading.Event()
    async with live(past) as screen:
        await screen.open("H")
        heat_map, read = screen.app.screen, past.records

        def slowly(from_ns: int, to_ns: int) -> list[WaitRecord]:
            may_read.wait(60.0)
            return read(from_ns, to_ns)

        past.records = slowly  # type: ignore[method-assign]
        try:
            await screen.keys("c")
            await screen.until(lambda: re.search(r"reading .*\d%", screen.text) is not None)
            await screen.keys("question_mark")
        finally:
            may_read.set()
        await screen.until(lambda: all(one.is_finished for one in heat_map.workers))
        await screen.keys("escape")
        assert screen.app.screen is heat_map


async def test_over_too_many_records_the_view_gets_shorter() -> None:
    async with live(relay(100)) as screen:
        monitor = screen.app.screen
        assert isinstance(monitor, MonitorScreen)
        monitor.above.reader = TimeLineReader(relay(100), max_records=60)
        await screen.open("T")
        await screen.says("Too many waits and holds for one picture")
        view = screen.app.screen
        assert isinstance(view, TimelineScreen)
        assert view.window.span_ns < 10 * 10**9
        assert screen.lane("worker-1")


async def test_a_wait_that_goes_on_leads_to_its_holder() -> None:
    scans = {
        at(0): waiting(t4714=wait(lock=9, duration_s=0.1)),
        at(1000): waiting(t4714=wait(lock=9, duration_s=0.1), t2=wait(duration_s=0.9)),
    }
    async with live(FixedPast(scans)) as screen:
        await screen.open("T")
        await screen.keys("home", "slash", *"t2", "enter")
        await screen.keys("escape", "end")
        assert screen.lanes.choose(2)
        await screen.settle()
        assert "t2 has waited 900 ms for mutex" in screen.text
        assert "f t4714 had the lock when the wait began" in screen.text
        assert screen.lane("t2").startswith(("└▶", "┌▶"))
        await screen.keys("f")
        assert screen.lanes.current == 4714


async def test_a_memory_that_forgets_takes_the_view_along() -> None:
    past = relay(20)
    async with live(past) as screen:
        await screen.open("T")
        await screen.keys("a", "home")
        past.snapshots = {
            time_ns: one for time_ns, one in past.snapshots.items() if time_ns > at(9000)
        }
        await screen.keys("greater_than_sign", "minus")
        view = screen.app.screen
        assert isinstance(view, TimelineScreen)
        await screen.until(lambda: view.window.from_ns >= at(9500))
        await screen.says("10.5s up to now")
