"""The call tree driven by keys, over snapshots made by hand and over a report."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace
from support.driven import Screen, row_under_cursor
from support.feed import HandFeed
from textual.geometry import Region
from unit.builders import records, scenarios

from locktop.collector.model import Snapshot, WaitStack
from locktop.collector.render.profiles import vsperf_report
from locktop.collector.render.profiles.call_tree import Node
from locktop.collector.render.profiles.profile import ReportProfile, SnapshotProfile
from locktop.tui.app import CallTreeApp, LocktopApp
from locktop.tui.screens.call_tree import CallTreeScreen
from locktop.tui.views.call_tree_rows import fit_chain
from locktop.tui.widgets.item_list import ItemList

REPORT = b"""\
Type,Function Name,Elapsed Inclusive Time,Elapsed Exclusive Time,Application Inclusive Time,\
Application Exclusive Time,Root Function Name
Root,main,100,40,10,4,main
Callee,work,60,60,6,6,main
Root,work,60,60,6,6,work
Caller,main,60,60,6,6,work
Caller,other
"""


class View(Screen):
    """The app under test with the call tree."""

    def row(self, text: str) -> str:
        found = [line for line in self.text.splitlines() if text in line]
        assert len(found) == 1, self.text
        return found[0]

    @property
    def under_cursor(self) -> str:
        screen = self.app.screen
        assert isinstance(screen, CallTreeScreen)
        return row_under_cursor(screen.active_list())


@asynccontextmanager
async def live(
    snapshot: Snapshot, size: tuple[int, int] = (100, 30), callers: tuple[str, bool] | None = None
) -> AsyncIterator[View]:
    feed, clock = HandFeed(snapshot), [0.0]
    app = LocktopApp(feed, "night", call_tree=callers, environ={}, now=lambda: clock[0])
    async with app.run_test(size=size) as pilot:
        view = View(app, pilot, feed, clock)
        await view.settle()
        if callers is None:
            await view.keys("c")
        yield view


@asynccontextmanager
async def of_report(data: bytes = REPORT) -> AsyncIterator[View]:
    profile = ReportProfile(vsperf_report.parse(data, "x.csv"), "x.csv")
    app = CallTreeApp(profile, "night", environ={}, now=lambda: 0.0)
    async with app.run_test(size=(100, 30)) as pilot:
        view = View(app, pilot, HandFeed(scenarios.empty()), [0.0])
        await view.settle()
        yield view


async def test_c_opens_the_call_tree_and_escape_goes_back() -> None:
    async with live(scenarios.deadlock()) as view:
        assert isinstance(view.app.screen, CallTreeScreen)
        assert "94% ━━━━━━━╸  1h28m      - ▾ start_thread [libc.so.6]" in view.text
        assert "ITSELF FUNCTION" in view.text
        await view.keys("escape")
        assert "Locks by" in view.text
        assert "ITSELF" not in view.text


async def test_a_chain_is_one_row_and_hot_branches_are_open() -> None:
    async with live(scenarios.deadlock()) as view:
        assert "▾ worker_main > serve_one serve.c:77" in view.text
        assert "▸ philosopher > take_right ring.c:36" in view.text
        assert "fork[0]" not in view.text


async def test_branches_open_and_close() -> None:
    async with live(scenarios.deadlock()) as view:
        await view.keys("end", "up")
        assert "philosopher" in view.under_cursor
        await view.keys("right")
        assert "mutex fork[0]" in view.text
        await view.keys("right")
        assert "mutex fork[0]" in view.under_cursor
        await view.keys("left")
        assert "philosopher" in view.under_cursor
        await view.keys("left")
        assert "mutex fork[0]" not in view.text
        await view.keys("left")
        assert "start_thread" in view.under_cursor


async def test_a_key_adds_idle_waits_that_count_for_nothing() -> None:
    async with live(scenarios.deadlock()) as view:
        assert "for work 4h02m, hidden" in view.text
        assert "pool_ready" not in view.text
        before = view.row("start_thread")
        await view.keys("i")
        assert " idle           3h00m " in view.row("cond pool_ready")
        assert view.row("start_thread") == before
        assert "for work 4h02m, shown, not added" in view.text


async def test_weights_change_by_a_key() -> None:
    async with live(scenarios.deadlock()) as view:
        await view.keys("v")
        assert " By waits 271k" in view.text
        await view.keys("v")
        assert "held by worker-2 > cache_put cache.c:88 > mutex g_cache_lock" in view.text
        await view.keys("v")
        assert " By time waited 1h33m" in view.text


async def test_a_snapshot_without_blame_says_so_on_the_screen() -> None:
    normal = scenarios.normal()
    locks = tuple(replace(lock, blame=()) for lock in normal.locks)
    async with live(replace(normal, locks=locks), callers=("blame", False)) as view:
        assert "nothing  this snapshot has no blame" in view.text


async def test_enter_walks_through_callers_and_callees_and_escape_back() -> None:
    async with live(scenarios.deadlock()) as view:
        await view.keys("down", "enter")
        assert "▶ Function 92% of all" in view.text
        assert "called by" in view.row("called by")
        assert view.under_cursor.strip().endswith("● serve_one serve.c:77")
        assert " 72% ━━━━━╸    1h02m     serve_get serve.c:130" in view.text
        await view.keys("down", "down", "enter")
        assert "● serve_get serve.c:130" in view.under_cursor
        await view.keys("up", "enter")
        assert "● serve_one" in view.under_cursor
        await view.keys("escape")
        assert "● serve_get" in view.under_cursor
        await view.keys("escape", "escape")
        assert "▶ Callers" in view.text
        assert "worker_main > serve_one" in view.under_cursor


async def test_a_wide_screen_has_tree_and_function_and_the_function_follows_the_cursor() -> None:
    async with live(scenarios.deadlock(), size=(200, 60)) as view:
        assert "● start_thread [libc.so.6]" in view.text
        await view.keys("down")
        assert "● serve_one serve.c:77" in view.text
        await view.keys("tab")
        assert "▶ Function" in view.text
        assert "─ Callers" in view.text
        await view.keys("tab")
        assert "▶ Callers" in view.text


async def test_the_filter_opens_branches_that_match() -> None:
    async with live(scenarios.deadlock()) as view:
        await view.keys("slash", *"fork[1]", "enter")
        assert "mutex fork[1]" in view.text
        assert "fork[0]" not in view.text
        assert "serve_one" not in view.text
        await view.keys("escape")
        assert "serve_one" in view.text


def waits(*entries: tuple[str, float]) -> Snapshot:
    """Waits by path; a path is a text of function names, the entry first."""
    stacks = {
        n: tuple(records.frame(name, f"{name}.c", 1) for name in reversed(way.split()))
        for n, (way, _) in enumerate(entries, 1)
    }
    found = tuple(WaitStack(n, 1, value) for n, (_, value) in enumerate(entries, 1))
    lock = records.lock(1, "m", wait_s=sum(value for _, value in entries), wait_stacks=found)
    return records.snapshot((), (lock,), stacks=stacks)


async def test_the_cursor_stays_on_its_branch_while_the_figures_change() -> None:
    async with live(waits(("main a", 5.0), ("main b", 4.0), ("main c", 3.0))) as view:
        await view.keys("down", "down")
        assert "b b.c:1" in view.under_cursor
        await view.show(waits(("main c", 30.0), ("main b", 4.0), ("main a", 5.0)))
        assert "b b.c:1" in view.under_cursor
        lines = [line for line in view.text.splitlines() if " > mutex m" in line]
        assert [line.split()[-5] for line in lines] == ["c", "a", "b"]


async def test_the_order_changes_at_most_once_a_second() -> None:
    async with live(waits(("main a", 5.0), ("main b", 4.0))) as view:
        await view.show(waits(("main a", 5.0), ("main b", 9.0)), after_s=0.5)
        lines = [line for line in view.text.splitlines() if " > mutex m" in line]
        assert [line.split()[-5] for line in lines] == ["a", "b"]
        assert "9.00s" in lines[1]
        await view.show(waits(("main a", 5.0), ("main b", 9.5)), after_s=0.5)
        lines = [line for line in view.text.splitlines() if " > mutex m" in line]
        assert [line.split()[-5] for line in lines] == ["b", "a"]


async def test_a_hot_branch_that_cools_down_stays_open() -> None:
    async with live(waits(("main a x", 5.0), ("main a y", 4.0), ("main b", 1.0))) as view:
        assert "x x.c:1" in view.text
        await view.show(waits(("main a x", 5.0), ("main a y", 4.0), ("main b", 1000.0)))
        assert "x x.c:1" in view.text


async def test_pause_holds_the_snapshot() -> None:
    async with live(waits(("main a", 5.0))) as view:
        await view.keys("p")
        assert "PAUSED" in view.text
        await view.show(waits(("main a", 7.0)))
        assert "7.00s" not in view.text
        await view.keys("p")
        assert "7.00s" in view.text


async def test_only_rows_that_changed_are_sent_again() -> None:
    async with live(waits(("main a", 5.0), ("main b", 4.0))) as view:
        tree = view.app.screen.query_one("#tree", ItemList)
        sent: list[int] = []
        refresh = tree.refresh

        def counted(*regions: Region, **rest: bool) -> ItemList:
            sent.extend(region.y for region in regions)
            return refresh(*regions, **rest)

        tree.refresh = counted  # type: ignore[method-assign, assignment]
        await view.show(waits(("main a", 5.0), ("main b", 4.0)))
        assert sent == []
        await view.show(waits(("main a", 5.0), ("main b", 4.001)))
        assert sent == []
        await view.show(waits(("main a", 5.0), ("main b", 4.9)))
        assert sorted(set(sent)) == [2, 3, 4]  # main, and both shares


async def test_the_tree_is_saved_as_text_and_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with live(scenarios.deadlock()) as view:
        await view.keys("W")
        await view.says("Saved ")
        await view.keys("w", "enter", "w")
        await view.says("-2.json")
    assert "+ serve_get at serve.c:130" in (tmp_path / "locktop-callers-store-4711.txt").read_text()
    tree = json.loads((tmp_path / "locktop-callers-store-4711.json").read_text())
    assert tree["nodes"][0]["function"] == "start_thread"
    walked = json.loads((tmp_path / "locktop-callers-store-4711-2.json").read_text())
    assert walked["butterfly"]["function"] == "start_thread"


async def test_a_report_opens_in_the_same_view_marked_as_an_estimate() -> None:
    async with of_report() as view:
        assert " x.csv, a caller/callee report" in view.text
        assert " By elapsed time 100 an estimate: no whole stacks " in view.text
        assert "line 6 is left out" in view.text
        assert "60% ━━━━━ " in view.row("work")
        await view.keys("v")
        assert " By application time 10 " in view.text
        await view.keys("down", "enter")
        assert "● work" in view.under_cursor
        await view.keys("escape", "escape")
        assert view.app.is_running


async def test_a_click_beside_the_tree_chooses_and_escape_leads_back() -> None:
    async with live(scenarios.deadlock(), size=(200, 60)) as view:
        await view.pilot.click("#wings", offset=(20, 5))
        await view.settle()
        assert "▶ Function" in view.text
        await view.keys("escape")
        assert "▶ Callers" in view.text


async def test_every_key_works_without_any_wait() -> None:
    async with live(scenarios.empty()) as view:
        assert "By time waited nothing" in view.text
        await view.keys("enter", "tab", "right", "left", "i", "v", "v", "down", "end")
        await view.keys("escape")
        assert "Locks by" in view.text


async def test_an_expensive_tree_is_computed_less_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with live(waits(("main a", 5.0))) as view:
        add_up = SnapshotProfile.tree

        def slow(profile: SnapshotProfile, weight: str) -> Node:
            view.clock[0] += 0.01  # by the clock of the screen
            return add_up(profile, weight)

        monkeypatch.setattr(SnapshotProfile, "tree", slow)
        await view.show(waits(("main a", 6.0)))
        assert "6.00s" in view.text
        before = view.clock[0]
        await view.show(waits(("main a", 7.0)), after_s=0.0)
        assert view.clock[0] == before
        await view.says("7.00s")
        assert view.clock[0] == pytest.approx(before + 0.01)


async def test_hostile_names_are_plain_text_on_the_screen() -> None:
    async with live(scenarios.hostile()) as view:
        await view.keys("i", "end", "enter")
        assert all(line.isprintable() for line in view.text.splitlines())


async def test_help_has_the_keys_of_the_view() -> None:
    async with live(scenarios.deadlock(), size=(100, 120)) as view:
        await view.keys("question_mark")
        assert "In the call tree" in view.text
        assert "weigh by time, count or blame" in view.text


@pytest.mark.parametrize(
    ("text", "width", "fitted"),
    [
        ("a > b > c", 9, "a > b > c"),
        ("a > b > c", 12, "a > b > c   "),
        ("  ▾ first > second > third > fourth", 25, "  ▾ … > third > fourth   "),
        ("    first > second > third > fourth", 25, "    … > third > fourth   "),
        ("  ▾ first > second", 16, "  ▾ … > second  "),
        (
            "  clone3 > submit_order orders_service.py:29 > Lock in submit_order (orders.py:29)",
            48,
            "  … > submit_order:29 > Lock in submit_order:29 ",
        ),
        (
            "  main > transfer accounts.c:18 > mutex g_savings",
            36,
            "  … > transfer:18 > mutex g_savings ",
        ),
    ],
)
def test_a_long_chain_shows_its_end(text: str, width: int, fitted: str) -> None:
    assert fit_chain(text, width) == fitted
