"""The screen driven by keys, over snapshots made by hand."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from support.driven import opened, with_lock
from textual import events
from textual.events import Key
from textual.widgets import Input
from unit.builders import scenarios as pictures

from locktop.collector.model import Lock
from locktop.collector.sources.launch import LEVELS
from locktop.tui.app import LocktopApp
from locktop.tui.widgets.footer import Footer


async def test_says_first_what_is_stuck_for_how_long_because_of_whom_and_where() -> None:
    async with opened() as screen:
        assert screen.lines[1].strip() == (
            "reader waits for g_table_lock for 1.27s; held by journal for 1.31s "
            "at journal_write journal.c:210, now in fsync"
        )


async def test_locks_are_sorted_by_wait_and_idle_ones_are_below() -> None:
    async with opened() as screen:
        await screen.keys("i")
        assert [name.split()[0] for name in screen.names("LOCK")] == [
            *("g_cache_lock", "g_table_lock", "stats_mutex", "journal_mutex"),
            *("pool_ready", "thread"),
        ]


async def test_sort_goes_through_all_orders_and_round() -> None:
    async with opened() as screen:
        seen = []
        for _ in range(6):
            seen.append(
                next(line for line in screen.lines if "Locks by " in line).split()[3].strip(",")
            )
            await screen.keys("s")
        assert seen == ["wait", "contended", "rate", "hold", "name", "wait"]


async def test_sort_leaves_out_what_is_not_shown() -> None:
    async with opened(size=(80, 24)) as screen:
        seen = []
        for _ in range(4):
            seen.append(
                next(line for line in screen.lines if "Locks by " in line).split()[3].strip(",")
            )
            await screen.keys("s")
        assert seen == ["wait", "rate", "name", "wait"]


async def test_reverse_turns_the_order_around_but_keeps_idle_below() -> None:
    async with opened() as screen:
        await screen.keys("i")
        before = screen.names("LOCK")
        await screen.keys("S")
        after = screen.names("LOCK")
        assert after[:4] == before[:4][::-1]
        assert sorted(after[4:]) == sorted(before[4:])
        assert "reversed" in screen.text


async def test_filter_is_live_and_escape_shows_everything_again() -> None:
    async with opened() as screen:
        await screen.keys("slash", *"TABLE")
        assert [name.split()[0] for name in screen.names("LOCK")] == ["g_table_lock"]
        assert [name.split()[0] for name in screen.names("THREAD")] == ["reader", "journal"]
        await screen.keys("enter")
        assert screen.locks.has_focus
        assert "with “TABLE”" in screen.text
        await screen.keys("escape")
        assert len(screen.names("LOCK")) == 4


async def test_keys_that_arrive_in_one_burst_reach_the_filter() -> None:
    async with opened() as screen:
        for _ in range(2):
            for key, letter in (("slash", "/"), ("q", "q"), ("u", "u"), ("slash", "/"), ("s", "s")):
                screen.app.post_message(Key(key, letter))
            await screen.pilot.pause()
            await screen.pilot.pause()
            assert screen.app.is_running
            assert screen.app.screen.query_one(Input).value == "qu/s"
            await screen.keys("escape")
            assert not screen.app.screen.query_one(Input).display


async def test_keys_typed_before_the_filter_was_closed_are_for_what_comes_after() -> None:
    async with opened() as screen:
        keys = [("slash", "/"), ("c", "c"), ("x", "x"), ("backspace", "\x7f"), ("a", "a")]
        for key, letter in [*keys, ("enter", "\r"), ("S", "S"), ("slash", "/"), ("c", "c")]:
            screen.app.post_message(Key(key, letter))
        await screen.says("reversed, with “cac”")
        assert screen.app.screen.query_one(Input).has_focus


@pytest.mark.parametrize("before", [[], ["slash", "x"], ["question_mark"], ["enter"]])
async def test_control_c_quits_whatever_is_shown(before: list[str]) -> None:
    async with opened() as screen:
        await screen.keys(*before)
        await screen.keys("ctrl+c")
        assert not screen.app.is_running


@pytest.mark.parametrize("keys", [[], ["slash", "x"], ["question_mark"], ["d"], ["tab", "w"]])
async def test_no_color_is_no_color_at_all(
    keys: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    feed = pictures.HandFeed(pictures.deadlock())
    app = LocktopApp(feed, environ={"NO_COLOR": "1"}, now=lambda: 0.0)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(*keys)
        await pilot.pause()
        for strip in app.screen._compositor.render_strips():
            for text, style, _ in strip:
                colours = (style.color, style.bgcolor) if style is not None else ()
                assert all(colour is None or colour.is_default for colour in colours), text


async def test_keys_that_come_faster_than_they_are_heard_mean_the_same() -> None:
    async with opened(pictures.deadlock()) as screen:
        await screen.keys("d", "enter")
        slowly = screen.text
        await screen.keys("escape", "escape")
        assert screen.text != slowly
        for key, character in (("d", "d"), ("enter", "\r")):
            screen.app.post_message(events.Key(key, character))
        await screen.pilot.pause()
        await screen.pilot.pause()
        assert screen.text == slowly


async def test_letters_typed_into_the_filter_are_no_keys() -> None:
    async with opened() as screen:
        await screen.keys("slash", "q", "p", "w")
        assert "PAUSED" not in screen.text
        assert screen.app.is_running


async def test_the_cursor_stays_on_the_lock_when_the_order_changes() -> None:
    async with opened() as screen:
        await screen.keys("down", "down")
        assert screen.locks.current == 3
        await screen.show(with_lock(pictures.normal(), 3, wait_s=99_999.0))
        assert screen.names("LOCK")[0] == "stats_mutex"
        assert screen.locks.current == 3
        assert " stats_mutex  mutex" in screen.text


async def test_before_anything_is_chosen_the_cursor_stays_on_top() -> None:
    async with opened() as screen:
        assert screen.locks.current == 1
        await screen.show(with_lock(pictures.normal(), 3, wait_s=99_999.0))
        assert screen.locks.current == 3


async def test_the_order_changes_at_most_once_a_second() -> None:
    async with opened() as screen:
        await screen.keys("i")
        before = screen.names("LOCK")
        changed = with_lock(pictures.normal(), 3, wait_s=99_999.0)
        await screen.show(changed, after_s=0.4)
        assert screen.names("LOCK") == before
        assert "27h46m" in screen.text or "1d03h" in screen.text
        await screen.show(replace(changed), after_s=0.7)
        assert screen.names("LOCK")[0] == "stats_mutex"


async def test_pause_holds_the_picture_and_the_newest_comes_afterwards() -> None:
    async with opened() as screen:
        await screen.keys("p")
        assert "PAUSED" in screen.lines[0]
        await screen.show(pictures.deadlock())
        await screen.show(pictures.ended())
        assert "DEADLOCK" not in screen.text
        assert "ENDED" not in screen.text
        await screen.keys("space")
        assert "PAUSED" not in screen.text
        assert "ENDED" in screen.lines[0]


async def test_a_deadlock_is_called_with_threads_locks_places_and_stacks() -> None:
    async with opened() as screen:
        assert "DEADLOCK" not in screen.text
        await screen.show(pictures.deadlock())
        banner = "\n".join(screen.lines[1:5])
        assert "DEADLOCK for 41.7s: 3 threads wait for each other" in banner
        for i in range(3):
            assert f"philosopher-{i} waits for fork[{(i + 1) % 3}]" in banner
        assert banner.count("; at take_right ring.c:36, taken at take_left ring.c:31") == 3
        assert banner.count(", taken at take_left ring.c:31") == 3
        await screen.keys("d", "enter")
        for i in range(3):
            assert f"philosopher-{i} ({4730 + i})" in screen.text
        assert screen.text.count("1 philosopher") == 3
        await screen.keys("escape")
        assert screen.locks.has_focus


async def test_deadlocked_locks_and_threads_stand_above_the_others() -> None:
    async with opened(pictures.deadlock()) as screen:
        assert [line[0] for line in screen.lines if "fork[" in line][3:6] == ["!"] * 3
        # Closed as their class is.
        assert [line[1:10].strip() for line in screen.lines if "fork[" in line][3:7] == [
            "▸ fork[]",
            "fork[0]",
            "fork[1]",
            "fork[2]",
        ]
        assert all(name.startswith("philosopher") for name in screen.names("THREAD")[:3])


async def test_no_deadlock_says_so() -> None:
    async with opened() as screen:
        await screen.keys("d")
        await screen.says("There is no deadlock.")


async def test_what_is_idle_is_hidden_until_it_is_asked_for() -> None:
    async with opened() as screen:
        assert "pool-" not in screen.text
        assert "by wait, 2 idle hidden (i)" in screen.text, "locks"
        assert "by state, 4 idle hidden (i)" in screen.text
        await screen.keys("i")
        assert "▸ pool-# x3" in screen.text
        assert "hidden" not in screen.text
        await screen.keys("i")
        assert "pool-" not in screen.text


async def test_nothing_is_called_idle_where_that_is_not_known() -> None:
    for changed in ({"level": "dormant"}, {"ended": True}):
        async with opened(replace(pictures.normal(), **changed)) as screen:
            assert "pool_ready" in screen.text
            assert "hidden" not in screen.text


async def test_who_is_in_a_deadlock_is_never_hidden() -> None:
    ring = pictures.deadlock()
    calm = tuple(
        replace(one, state=pictures.ThreadState.IDLE, holds=(), wait_share=0.0)
        for one in ring.threads
    )
    locks = tuple(replace(one, idle=True) for one in ring.locks)
    async with opened(replace(ring, threads=calm, locks=locks)) as screen:
        assert [name.split()[0] for name in screen.names("THREAD")] == [
            *("philosopher-0", "philosopher-1", "philosopher-2"),
        ]
        assert [name for name in screen.names("LOCK") if name] == ["▸ fork[]"]


async def test_a_thread_that_sleeps_while_it_holds_a_lock_is_not_idle() -> None:
    calm = pictures.normal()
    asleep = tuple(
        replace(t, state=pictures.ThreadState.IDLE) if t.tid == 4714 else t for t in calm.threads
    )
    async with opened(replace(calm, threads=asleep)) as screen:
        assert "worker-2" in "\n".join(screen.names("THREAD"))
        assert "pool-1" not in screen.text


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


async def test_enter_gives_the_details_the_screen_and_escape_takes_it_back() -> None:
    async with opened(size=(80, 24)) as screen:
        assert "cache_get" not in screen.text
        await screen.keys("enter")
        assert "cache_get" in screen.text
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


async def test_long_lines_of_the_details_are_wrapped_not_cut() -> None:
    async with opened(size=(200, 60)) as screen:
        panel = [line[142:].strip() for line in screen.lines]
        said = " ".join(panel)
        assert "3,634,456, contended 265,609 (7%), trylock failed 17" in said
        assert "held by   worker-2 (4714) for 93.1ms, taken at cache_put cache.c:88; now" in said


async def test_details_of_a_thread_follow_the_chain_to_its_root() -> None:
    calm = pictures.normal()
    chained = tuple(
        replace(t, waiting_for=pictures.wait(2, pictures.Kind.RWLOCK, 0.5, 4716, stack=5))
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


async def test_who_goes_from_a_deadlock_to_a_list_sees_what_is_in_the_list() -> None:
    async with opened(pictures.deadlock(), size=(80, 24)) as screen:
        await screen.keys("d", "pagedown", "pagedown", "escape", "tab", "enter")
        assert "Details of the deadlock" not in screen.text
        (title,) = (line for line in screen.lines if "Details of" in line)
        assert re.findall(r" (\d+)-\d+ of", title) in ([], ["1"]), "from its top"


async def test_a_deadlock_that_is_read_stays_when_the_list_moves_on_by_itself() -> None:
    ring = pictures.deadlock()
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
        assert "Details of the deadlock" not in screen.text, "that was somebody's choice"


async def test_save_writes_the_picture_that_is_seen_and_never_over_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened() as screen:
        for _ in range(2):
            await screen.keys("w")
            await screen.app.workers.wait_for_complete()
            await screen.pilot.pause()
        saved = sorted(tmp_path.iterdir())
        assert [path.name for path in saved] == [
            "locktop-store-4711-20261121T031245Z-2.json",
            "locktop-store-4711-20261121T031245Z.json",
        ]
        await screen.says(f"Saved {saved[0]}")
        assert json.loads(saved[1].read_text())["process"]["pid"] == pictures.PID
        assert saved[1].stat().st_mode & 0o777 == 0o600


async def test_what_is_told_covers_the_keys_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / "a-directory-with-a-long-name" / "and-another-one"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    async with opened(size=(80, 24)) as screen:
        before = screen.lines
        await screen.keys("w")
        await screen.app.workers.wait_for_complete()
        await screen.says("…")
        assert screen.lines[:-1] == before[:-1]
        # The directory gives way, the name of the file does not.
        assert screen.lines[-1].startswith(" Saved /")
        assert screen.lines[-1].endswith("e/locktop-store-4711-20261121T031245Z.json")
        assert len(screen.lines[-1]) <= 80
        screen.app.screen.query_one(Footer).clear()
        await screen.says(before[-1])


async def test_what_is_known_of_the_picture_is_told_flagged_and_in_the_help() -> None:
    notes = ("the shared memory is full: " + "details are missing " * 5, "other locks are one")
    async with opened(size=(80, 24)) as screen:
        assert "note" not in screen.lines[0]
        await screen.show(replace(pictures.normal(), notes=notes))
        await screen.says("2 notes: ?")
        told = " ".join(line.strip() for line in screen.lines[-4:])
        assert all(note.strip() in told for note in notes)
        screen.app.screen.query_one(Footer).clear()
        await screen.keys("question_mark")
        await screen.says("other locks are one")


async def test_a_picture_that_cannot_be_saved_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    async with opened() as screen:
        await screen.keys("w")
        await screen.app.workers.wait_for_complete()
        await screen.pilot.pause()
        await screen.says("Not saved: No such file or directory")


async def test_help_lists_every_key_and_closes() -> None:
    async with opened(size=(100, 60)) as screen:
        await screen.keys("question_mark")
        for says in ("hold the picture still", "save the picture as JSON", "next theme", "WAIT/s"):
            assert says in screen.text
        await screen.keys("escape")
        assert "Keys" not in screen.text


async def test_theme_switch_keeps_the_text() -> None:
    async with opened() as screen:
        before = screen.lines[:-6]
        first = screen.app.theme
        seen = {first}
        for _ in range(4):
            await screen.keys("t")
            seen.add(screen.app.theme)
        assert seen == {"ansi16", "contrast", "mono", "night", "paper"}
        await screen.keys("t")
        assert screen.app.theme == first
        assert screen.lines[:12] == before[:12]


async def test_a_strangers_names_are_only_text() -> None:
    async with opened(pictures.hostile()) as screen:
        assert "[bold]a[/bold]" in screen.text
        assert "[@click=app.quit]x[/]" in screen.text
        assert "線程の名前" in screen.text
        assert "\x1b" not in screen.text
        assert "\x07" not in screen.text
        assert "?[31mred?" in screen.text
        for key in ("tab", "down", "enter", "down"):
            await screen.keys(key)
        assert "\x1b" not in screen.text


async def test_the_end_of_the_process_is_told_and_the_picture_stays() -> None:
    async with opened() as screen:
        await screen.show(pictures.ended())
        assert "ENDED" in screen.lines[0]
        assert "g_cache_lock" in screen.text
        await screen.says("the process has ended")


async def test_the_level_is_in_the_first_line_on_every_size() -> None:
    for size in [(80, 24), (200, 60)]:
        async with opened(size=size) as screen:
            assert "  level contended  " in screen.lines[0]
            await screen.show(replace(pictures.normal(), level="all", lost_events=12345))
            assert "  level all  " in screen.lines[0]


async def test_a_level_is_chosen_from_those_there_are() -> None:
    async with opened(replace(pictures.normal(), level="counting"), size=(80, 24)) as screen:
        await screen.keys("L")
        await screen.says("WHAT IT DOES")
        for level in LEVELS:
            assert any(line.split()[:1] == [level] for line in screen.lines), level
        assert "in store 4711, counting now" in screen.text
        await screen.keys("down", "down", "enter")
        await screen.says("Level blocks, was contended")
        assert screen.feed.level == "blocks"
        assert screen.locks.has_focus


@pytest.mark.parametrize("key", ["escape", "q", "L"])
async def test_the_choice_of_a_level_is_left_without_one(key: str) -> None:
    async with opened() as screen:
        await screen.keys("L", "down")
        await screen.says("WHAT IT DOES")
        await screen.keys(key)
        assert "WHAT IT DOES" not in screen.text
        assert screen.feed.level == "contended"
        assert screen.app.is_running


async def test_keys_that_arrive_in_one_burst_reach_the_choice_of_a_level() -> None:
    async with opened() as screen:
        for key, letter in (("L", "L"), ("down", None), ("enter", "\r"), ("S", "S")):
            screen.app.post_message(Key(key, letter))
        await screen.says("Level blocks, was contended")
        assert "reversed" in screen.text


async def test_a_level_that_cannot_be_set_is_told_in_the_last_line() -> None:
    async with opened(size=(80, 24)) as screen:
        screen.feed.refusal = "cannot set the level: process 4711 (store) has ended"
        await screen.keys("L", "up", "enter")
        await screen.says("cannot set the level: process 4711 (store) has ended")
        assert screen.lines[-1].startswith(" cannot set the level: ")


async def test_an_ended_process_has_no_level_to_set() -> None:
    async with opened(pictures.ended()) as screen:
        await screen.keys("L")
        await screen.says("The process has ended: there is no level to set.")
        assert "WHAT IT DOES" not in screen.text


async def test_a_dormant_library_claims_nothing() -> None:
    calm = replace(pictures.empty(), level="dormant")
    async with opened(calm, size=(80, 24)) as screen:
        assert "dormant" in screen.lines[0]
        assert "No thread waits" not in screen.text
        assert "is dormant" in screen.lines[1]


async def test_rate_keys_reach_the_feed_and_the_first_line() -> None:
    async with opened() as screen:
        assert screen.feed.interval_s == pytest.approx(0.5)
        assert screen.lines[0].endswith(" 2/s")
        await screen.keys("plus")
        assert screen.feed.interval_s == pytest.approx(0.25)
        assert screen.lines[0].endswith(" 4/s")
        await screen.keys("minus", "minus")
        assert screen.feed.interval_s == pytest.approx(1.0)


async def test_a_lock_that_went_away_leaves_the_list_at_once() -> None:
    async with opened() as screen:
        calm = pictures.normal()
        fewer = replace(calm, locks=tuple(k for k in calm.locks if k.id != 1))
        await screen.show(fewer, after_s=0.1)
        assert "g_cache_lock" not in "\n".join(screen.names("LOCK"))


async def test_paging_and_ends_in_a_long_list() -> None:
    async with opened(pictures.many()) as screen:
        first: list[Lock] = list(pictures.many().locks)
        await screen.keys("end")
        assert screen.locks.current == first[-1].id
        await screen.keys("home")
        assert screen.locks.current == first[0].id
        await screen.keys("pagedown")
        assert screen.locks.current == first[screen.locks.page - 1].id
        assert "of 1000" in screen.text


async def test_an_empty_process_is_drawn() -> None:
    async with opened(pictures.empty(), size=(80, 24)) as screen:
        assert "No thread waits for a lock that is watched." in screen.text
        for key in ("down", "enter", "tab", "d", "S", "end", "escape"):
            await screen.keys(key)
        assert screen.app.is_running


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60), (40, 10), (20, 5)])
async def test_every_size_draws_without_a_line_too_long(size: tuple[int, int]) -> None:
    async with opened(pictures.deadlock(), size=size) as screen:
        assert len(screen.lines) <= size[1]
        assert all(len(line) <= size[0] for line in screen.lines)


async def test_growing_the_terminal_shows_more() -> None:
    async with opened(size=(80, 24)) as screen:
        await screen.pilot.resize_terminal(200, 60)
        await screen.pilot.pause()
        assert "HOLDER NOW" in screen.text
        assert "Threads by state" in screen.text
