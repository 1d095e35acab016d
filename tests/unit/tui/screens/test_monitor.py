"""The monitor driven by keys, over snapshots made by hand."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from support.driven import opened, says, settle
from support.feed import HandFeed, strips_of
from textual import events
from unit.builders import records, scenarios

from locktop.collector.model import Kind
from locktop.tui.app import LocktopApp
from locktop.tui.themes import shipped_names
from locktop.tui.widgets.footer import Footer


async def test_the_first_line_names_waiters_duration_holder_and_location() -> None:
    async with opened() as screen:
        assert screen.headline.strip() == (
            "reader waits for g_table_lock for 1.27s; held by journal for 1.31s "
            "at journal_write journal.c:210, now in fsync"
        )


@pytest.mark.parametrize("before", [[], ["slash", "x"], ["question_mark"], ["enter"]])
async def test_control_c_quits_from_every_screen(before: list[str]) -> None:
    async with opened() as screen:
        await screen.keys(*before)
        await screen.keys("ctrl+c")
        assert not screen.app.is_running


@pytest.mark.parametrize("keys", [[], ["slash", "x"], ["question_mark"], ["d"], ["tab", "w"]])
async def test_no_color_leaves_no_color_at_all(
    keys: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    feed = HandFeed(scenarios.deadlock())
    app = LocktopApp(feed, environ={"NO_COLOR": "1"}, now=lambda: 0.0)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(*keys)
        await settle(pilot)
        for strip in strips_of(app):
            for text, style, _ in strip:
                colours = (style.color, style.bgcolor) if style is not None else ()
                assert all(colour is None or colour.is_default for colour in colours), text


async def test_keys_in_a_burst_have_the_same_effect() -> None:
    async with opened(scenarios.deadlock()) as screen:
        await screen.keys("d", "enter")
        slowly = screen.text
        await screen.keys("escape", "escape")
        assert screen.text != slowly
        for key, character in (("d", "d"), ("enter", "\r")):
            screen.app.post_message(events.Key(key, character))
        await screen.settle()
        assert screen.text == slowly


async def test_pause_keeps_the_snapshot_and_the_newest_follows() -> None:
    async with opened() as screen:
        await screen.keys("p")
        assert "PAUSED" in screen.status
        await screen.show(scenarios.deadlock())
        await screen.show(scenarios.ended())
        assert "DEADLOCK" not in screen.text
        assert "ENDED" not in screen.text
        await screen.keys("space")
        assert "PAUSED" not in screen.text
        assert "ENDED" in screen.status


async def test_the_deadlock_details_have_threads_locks_locations_and_stacks() -> None:
    async with opened() as screen:
        assert "DEADLOCK" not in screen.text
        await screen.show(scenarios.deadlock())
        banner = "\n".join(screen.lines[2:6])
        assert "DEADLOCK for 41.7s: 3 threads wait for each other" in banner
        for i in range(3):
            assert f"philosopher-{i} waits for fork[{(i + 1) % 3}]" in banner
        assert banner.count("; at take_right ring.c:36, taken at take_left ring.c:31") == 3
        assert banner.count(", taken at take_left ring.c:31") == 3
        await screen.keys("d", "z")
        for i in range(3):
            assert f"philosopher-{i} ({4730 + i})" in screen.text
        assert screen.details.whole_text.count("1 philosopher") == 3
        await screen.keys("escape")
        assert screen.locks.has_focus


async def test_the_deadlock_key_says_that_no_deadlock_is_present() -> None:
    async with opened() as screen:
        await screen.keys("d")
        await screen.says("There is no deadlock.")


async def test_small_terminal_shows_one_list_and_tab_goes_on() -> None:
    async with opened(size=(80, 24)) as screen:
        assert "Locks by wait" in screen.text
        assert "Threads by" not in screen.text
        await screen.keys("tab")
        assert "Threads by state" in screen.text
        assert "Locks by" not in screen.text
        assert "of a thread" in screen.text
        await screen.keys("tab")
        assert screen.details.has_focus
        await screen.keys("tab")
        assert screen.locks.has_focus


async def test_enter_enlarges_the_details_and_escape_restores_the_lists() -> None:
    async with opened(size=(80, 24)) as screen:
        assert "980ms held" not in screen.text
        await screen.keys("enter", "down")
        assert "980ms held" in screen.text
        assert "Locks by" not in screen.text
        await screen.keys("end")
        assert "Latest waits" in screen.text
        await screen.keys("escape")
        assert "Locks by wait" in screen.text
        assert screen.locks.has_focus


async def test_details_of_a_lock_have_every_digit_of_the_counters() -> None:
    async with opened(size=(140, 60)) as screen:
        assert "3,634,456, contended 265,609 (7%), trylock failed 17" in screen.text
        assert "held by   worker-2 (4714) for 93.1ms, taken at" in screen.text
        assert "cache_put cache.c:88; now running" in screen.text


async def test_long_lines_of_the_details_are_wrapped() -> None:
    async with opened(size=(200, 60)) as screen:
        panel = [line[142:].strip() for line in screen.lines]
        said = " ".join(panel)
        assert "3,634,456, contended 265,609 (7%), trylock failed 17" in said
        assert "held by   worker-2 (4714) for 93.1ms, taken at cache_put cache.c:88; now" in said


async def test_details_of_a_thread_follow_the_chain_to_its_root() -> None:
    calm = scenarios.normal()
    chained = tuple(
        replace(t, waiting_for=records.wait(2, Kind.RWLOCK, 0.5, 4716, stack=5))
        if t.tid == 4714
        else t
        for t in calm.threads
    )
    async with opened(replace(calm, threads=chained)) as screen:
        await screen.keys("tab", "down")
        assert screen.threads.current == 4712
        assert (
            "because   worker-2 took it at cache_put cache.c:88; waits for g_table" in screen.text
        )
        assert "because   journal took it at journal_write journal.c:210" in screen.text


async def test_moving_in_a_list_replaces_the_deadlock_details() -> None:
    async with opened(scenarios.deadlock(), size=(80, 24)) as screen:
        await screen.keys("d", "pagedown", "pagedown", "escape", "tab", "enter")
        assert "Details of the deadlock" not in screen.text
        (title,) = (line for line in screen.lines if "Details of" in line)
        assert re.findall(r" (\d+)-\d+ of", title) in ([], ["1"]), "the details begin at their top"


async def test_deadlock_details_stay_while_the_list_changes_by_itself() -> None:
    ring = scenarios.deadlock()
    async with opened(ring) as screen:
        await screen.keys("tab", "end", "d")
        assert "Details of the deadlock" in screen.text
        last = screen.threads.current
        await screen.show(
            replace(ring, threads=tuple(one for one in ring.threads if one.tid != last))
        )
        assert screen.threads.current != last
        assert "Details of the deadlock" in screen.text
        await screen.keys("tab", "tab", "up")
        assert "Details of the deadlock" not in screen.text, "the user chose this row"


async def test_save_writes_the_visible_snapshot_and_overwrites_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened() as screen:
        for _ in range(2):
            await screen.keys("w")
            await screen.app.workers.wait_for_complete()
            await screen.settle()
        saved = sorted(tmp_path.iterdir())
        assert [path.name for path in saved] == [
            "locktop-store-4711-20261121T031245Z-2.json",
            "locktop-store-4711-20261121T031245Z.json",
        ]
        await screen.says(f"Saved {saved[0]}")
        assert json.loads(saved[1].read_text())["process"]["pid"] == records.PID
        assert saved[1].stat().st_mode & 0o777 == 0o600


async def test_the_path_of_a_saved_file_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / "a-directory-with-a-long-name" / "and-another-one"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    async with opened(size=(80, 24)) as screen:
        before = screen.lines
        await screen.keys("w")
        await screen.app.workers.wait_for_complete()
        await screen.says("Saved")
        (saved,) = deep.iterdir()
        await screen.settle()
        message = "".join(line.strip() for line in screen.lines[-6:])
        assert message.endswith(str(saved))
        assert max(map(len, screen.lines)) <= 80
        screen.app.screen.query_one(Footer).clear()
        await screen.says(before[-1])


async def test_notes_of_the_snapshot_are_notified_flagged_and_in_the_help() -> None:
    notes = ("the shared memory is full: " + "details are missing " * 5, "other locks are one")
    async with opened(size=(80, 24)) as screen:
        assert "note" not in screen.status
        await screen.show(replace(scenarios.normal(), notes=notes))
        await screen.says("2 notes (key ?)")
        notification = " ".join(line.strip() for line in screen.lines[-4:])
        assert all(note.strip() in notification for note in notes)
        screen.app.screen.query_one(Footer).clear()
        await screen.keys("question_mark")
        await screen.says("other locks are one")


async def test_an_error_of_saving_is_notified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    async with opened() as screen:
        await screen.keys("w")
        await screen.app.workers.wait_for_complete()
        await screen.settle()
        await screen.says("Not saved: no such file or directory")


async def test_help_lists_every_key_and_closes() -> None:
    async with opened(size=(100, 110)) as screen:
        await screen.keys("question_mark")
        pages = screen.text
        for _ in range(6):
            await screen.keys("pagedown")
            pages += screen.text
        for says in ("hold the screen still", "save the snapshot as JSON", "next theme", "WAIT/s"):
            assert says in pages
        await screen.keys("escape")
        assert "Keys" not in screen.text


async def test_theme_switch_keeps_the_text() -> None:
    async with opened() as screen:
        before = screen.lines[:-6]
        first = screen.app.theme
        seen = {first}
        for _ in shipped_names()[1:]:
            await screen.keys("t")
            seen.add(screen.app.theme)
        assert seen == set(shipped_names())
        await screen.keys("t")
        assert screen.app.theme == first
        assert screen.lines[:12] == before[:12]


async def test_hostile_names_are_only_text() -> None:
    async with opened(scenarios.hostile()) as screen:
        assert "[bold]a[/bold]" in screen.text
        assert "[@click=app.quit]x[/]" in screen.text
        assert "線程の名前" in screen.text
        assert "\x1b" not in screen.text
        assert "\x07" not in screen.text
        assert "?[31mred?" in screen.text
        for key in ("tab", "down", "enter", "down"):
            await screen.keys(key)
        assert "\x1b" not in screen.text


async def test_the_end_of_the_process_is_notified_and_the_snapshot_stays() -> None:
    async with opened() as screen:
        await screen.show(scenarios.ended())
        assert "ENDED" in screen.status
        assert "g_cache_lock" in screen.text
        await screen.says("the process has ended")


async def test_a_dormant_library_makes_no_claims() -> None:
    calm = replace(scenarios.empty(), level="dormant")
    async with opened(calm, size=(80, 24)) as screen:
        assert "records nothing" in screen.status
        assert "No thread waits" not in screen.text
        assert "is dormant" in screen.headline


async def test_rate_keys_reach_the_feed_and_the_first_line() -> None:
    async with opened() as screen:
        assert screen.feed.interval_s == pytest.approx(0.5)
        assert screen.status.endswith(" 2 updates/s")
        await screen.keys("plus")
        assert screen.feed.interval_s == pytest.approx(0.25)
        assert screen.status.endswith(" 4 updates/s")
        await screen.keys("minus", "minus")
        assert screen.feed.interval_s == pytest.approx(1.0)


async def test_an_empty_process_is_drawn() -> None:
    async with opened(scenarios.empty(), size=(80, 24)) as screen:
        assert "No thread waits for a lock that is watched." in screen.text
        for key in ("down", "enter", "tab", "d", "S", "end", "escape"):
            await screen.keys(key)
        assert screen.app.is_running


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60), (40, 10), (20, 5)])
async def test_every_size_draws_without_a_line_too_long(size: tuple[int, int]) -> None:
    async with opened(scenarios.deadlock(), size=size) as screen:
        assert len(screen.lines) <= size[1]
        assert all(len(line) <= size[0] for line in screen.lines)


async def test_growing_the_terminal_shows_more() -> None:
    async with opened(size=(80, 24)) as screen:
        await screen.resize(200, 60)
        assert "HOLDER NOW" in screen.text
        assert "Threads by state" in screen.text


@pytest.mark.parametrize("view", ["1", "4", "5", "7", "c"])
async def test_a_view_without_columns_says_so(view: str) -> None:
    async with opened(size=(80, 24)) as screen:
        for key in ("s", "S", "o"):
            await screen.keys(view, key)
            assert "There is one order here, and there are no columns to choose." in screen.text


async def test_the_keys_of_columns_work_beside_the_details() -> None:
    async with opened(size=(200, 60)) as screen:
        before = screen.text
        await screen.keys("enter", "s")
        assert "There is one order" not in screen.text
        assert screen.text != before


@pytest.mark.parametrize("view", ["2", "3", "4", "5"])
async def test_a_filter_without_a_match_says_how_to_leave_it(view: str) -> None:
    async with opened(size=(80, 24)) as screen:
        await screen.keys(view, "slash", *"qq", "enter")
        assert "No row here has “qq”; Esc leaves the filter." in screen.text
        await screen.keys("escape")
        assert "No row here" not in screen.text


async def test_the_screen_waits_for_a_slow_first_scan_in_words() -> None:
    feed = HandFeed()
    app = LocktopApp(feed, environ={"TERM": "xterm-256color"})
    async with app.run_test(size=(80, 24)) as pilot:
        await says(app, pilot, "WAITING  for the first snapshot")
        feed.publish(scenarios.normal())
        await says(app, pilot, "g_cache_lock")
        await says(app, pilot, "for the first snapshot", wanted=False)
