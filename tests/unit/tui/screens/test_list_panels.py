"""The two lists: sorting, the cursor, hidden idle rows, paging."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from support.driven import opened, with_lock
from unit.builders import scenarios

from locktop.collector.model import Kind, Lock, Pattern, PatternName, ThreadState
from locktop.tui.views.styled_line import Line, line_text
from locktop.tui.widgets.item_list import ItemList


async def test_locks_are_sorted_by_wait_with_idle_locks_below() -> None:
    async with opened() as screen:
        await screen.keys("i")
        assert [name.split()[0] for name in screen.names("LOCK")] == [
            *("g_cache_lock", "g_table_lock", "stats_mutex", "journal_mutex"),
            *("pool_ready", "thread"),
        ]


async def test_the_sort_key_cycles_through_all_sortings() -> None:
    async with opened() as screen:
        seen = []
        for _ in range(6):
            seen.append(
                next(line for line in screen.lines if "Locks by " in line).split()[3].strip(",")
            )
            await screen.keys("s")
        assert seen == ["wait", "contended", "rate", "hold", "name", "wait"]


async def test_the_sort_key_skips_columns_that_do_not_fit() -> None:
    async with opened(size=(80, 24)) as screen:
        seen = []
        for _ in range(4):
            seen.append(
                next(line for line in screen.lines if "Locks by " in line).split()[3].strip(",")
            )
            await screen.keys("s")
        assert seen == ["wait", "rate", "name", "wait"]


async def test_reverse_reverses_the_rows_but_keeps_idle_rows_below() -> None:
    async with opened() as screen:
        await screen.keys("i")
        before = screen.names("LOCK")
        await screen.keys("S")
        after = screen.names("LOCK")
        assert after[:4] == before[:4][::-1]
        assert sorted(after[4:]) == sorted(before[4:])
        assert "reversed" in screen.text


async def test_a_hidden_list_keeps_its_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the list would be painted twice when it is visible again."""
    drawn: set[tuple[str | None, str]] = set()
    set_heads = ItemList.set_heads

    def note(widget: ItemList, title: str, detail: str, columns: Line = ()) -> None:
        drawn.add((widget.id, line_text(columns)))
        set_heads(widget, title, detail, columns)

    async with opened(size=(120, 40)) as screen:
        monkeypatch.setattr(ItemList, "set_heads", note)
        await screen.keys("z")
        await screen.show(scenarios.normal())
        await screen.keys("z")
        assert len(drawn) == len({name for name, _ in drawn}) == 2


async def test_the_cursor_stays_on_the_lock_when_the_order_changes() -> None:
    async with opened() as screen:
        await screen.keys("down", "down")
        assert screen.locks.current == 3
        await screen.show(with_lock(scenarios.normal(), 3, wait_s=99_999.0))
        assert screen.names("LOCK")[0] == "stats_mutex"
        assert screen.locks.current == 3
        assert " stats_mutex  mutex" in screen.text


async def test_the_cursor_stays_on_top_before_any_choice() -> None:
    async with opened() as screen:
        assert screen.locks.current == 1
        await screen.show(with_lock(scenarios.normal(), 3, wait_s=99_999.0))
        assert screen.locks.current == 3


async def test_the_order_changes_at_most_once_a_second() -> None:
    async with opened() as screen:
        await screen.keys("i")
        before = screen.names("LOCK")
        changed = with_lock(scenarios.normal(), 3, wait_s=99_999.0)
        await screen.show(changed, after_s=0.4)
        assert screen.names("LOCK") == before
        assert "27h46m" in screen.text or "1d03h" in screen.text
        await screen.show(replace(changed), after_s=0.7)
        assert screen.names("LOCK")[0] == "stats_mutex"


async def test_deadlocked_locks_and_threads_stand_above_the_others() -> None:
    async with opened(scenarios.deadlock()) as screen:
        assert [line[0] for line in screen.lines if "fork[" in line][3:6] == ["!"] * 3
        # Both rows are closed classes.
        assert [line[1:10].strip() for line in screen.lines if "fork[" in line][3:7] == [
            "▸ fork[]",
            "fork[0]",
            "fork[1]",
            "fork[2]",
        ]
        assert all(name.startswith("philosopher") for name in screen.names("THREAD")[:3])


async def test_idle_rows_are_hidden_until_a_key_adds_them() -> None:
    async with opened() as screen:
        assert "pool-" not in screen.text
        assert "by wait, 2 idle hidden (i)" in screen.text, "locks"
        assert "by state, 4 idle hidden (i)" in screen.text
        await screen.keys("i")
        assert "▸ pool-# x3" in screen.text
        assert "hidden" not in screen.text
        await screen.keys("i")
        assert "pool-" not in screen.text


async def test_no_row_is_idle_if_idleness_is_unknown() -> None:
    for changed in ({"level": "dormant"}, {"ended": True}):
        async with opened(replace(scenarios.normal(), **changed)) as screen:
            assert "pool_ready" in screen.text
            assert "hidden" not in screen.text


async def test_a_deadlocked_thread_is_never_hidden() -> None:
    ring = scenarios.deadlock()
    calm = tuple(
        replace(one, state=ThreadState.IDLE, holds=(), wait_share=0.0) for one in ring.threads
    )
    locks = tuple(replace(one, idle=True) for one in ring.locks)
    async with opened(replace(ring, threads=calm, locks=locks)) as screen:
        assert [name.split()[0] for name in screen.names("THREAD")] == [
            *("philosopher-0", "philosopher-1", "philosopher-2"),
        ]
        assert [name for name in screen.names("LOCK") if name] == ["▸ fork[]"]


async def test_a_thread_that_sleeps_while_it_holds_a_lock_is_not_idle() -> None:
    calm = scenarios.normal()
    asleep = tuple(replace(t, state=ThreadState.IDLE) if t.tid == 4714 else t for t in calm.threads)
    async with opened(replace(calm, threads=asleep)) as screen:
        assert "worker-2" in "\n".join(screen.names("THREAD"))
        assert "pool-1" not in screen.text


async def test_a_destroyed_lock_leaves_the_list_at_once() -> None:
    async with opened() as screen:
        calm = scenarios.normal()
        fewer = replace(calm, locks=tuple(k for k in calm.locks if k.id != 1))
        await screen.show(fewer, after_s=0.1)
        assert "g_cache_lock" not in "\n".join(screen.names("LOCK"))


async def test_page_keys_home_and_end_move_in_a_long_list() -> None:
    async with opened(scenarios.many()) as screen:
        first: list[Lock] = list(scenarios.many().locks)
        await screen.keys("end")
        assert screen.locks.current == first[-1].id
        await screen.keys("home")
        assert screen.locks.current == first[0].id
        await screen.keys("pagedown")
        assert screen.locks.current == first[screen.locks.page - 1].id
        assert "of 1000" in screen.text


async def test_a_filter_by_column_and_what_is_wrong_with_it() -> None:
    async with opened(scenarios.normal(), size=(120, 40)) as screen:
        await screen.keys("slash", *"holder:journal wait>1s")
        assert "g_table_lock" in screen.text
        assert "g_cache_lock" not in "".join(screen.lines[2:])
        await screen.keys("enter", "slash", *" colour:red")
        await screen.says("filter: no column 'colour'")
        # The last right filter stays.
        assert "g_cache_lock" not in "".join(screen.lines[2:])
        await screen.keys("escape", "escape")
        assert "g_cache_lock" in "".join(screen.lines[2:])


async def test_a_condition_without_a_signal_has_a_row_unless_threads_wait_for_locks() -> None:
    """A pool without work looks the same, so it is never in the way of a wait for a lock."""
    calm = scenarios.normal()
    condition = next(lock for lock in calm.locks if lock.kind is Kind.COND)
    pattern = Pattern(PatternName.NO_SIGNAL, condition.id, (4720,), "evidence", "advice")
    busy = replace(calm, patterns=(pattern,))
    quiet = replace(
        busy,
        threads=tuple(t for t in busy.threads if t.waiting_for is None or t.waiting_for.idle),
    )
    async with opened(busy) as screen:
        assert condition.name not in screen.names("LOCK")
        await screen.show(quiet)
        assert condition.name in screen.names("LOCK")
