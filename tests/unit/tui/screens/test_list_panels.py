"""The two lists: sorting, the cursor, hidden idle rows, paging."""

from __future__ import annotations

from msgspec.structs import replace
from support.driven import opened, with_lock
from unit.builders import scenarios

from locktop.collector.model import Lock, ThreadState


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


async def test_the_cursor_stays_on_the_lock_when_the_order_changes() -> None:
    async with opened() as screen:
        await screen.keys("down", "down")
        assert screen.locks.current == 3
        await screen.show(with_lock(scenarios.normal(), 3, wait_s=99_999.0))
        assert screen.names("LOCK")[0] == "stats_mutex"
        assert screen.locks.current == 3
        assert " stats_mutex  mutex" in screen.text


async def test_before_anything_is_chosen_the_cursor_stays_on_top() -> None:
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
        # Closed as their class is.
        assert [line[1:10].strip() for line in screen.lines if "fork[" in line][3:7] == [
            "▸ fork[]",
            "fork[0]",
            "fork[1]",
            "fork[2]",
        ]
        assert all(name.startswith("philosopher") for name in screen.names("THREAD")[:3])


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
        async with opened(replace(scenarios.normal(), **changed)) as screen:
            assert "pool_ready" in screen.text
            assert "hidden" not in screen.text


async def test_who_is_in_a_deadlock_is_never_hidden() -> None:
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


async def test_a_lock_that_went_away_leaves_the_list_at_once() -> None:
    async with opened() as screen:
        calm = scenarios.normal()
        fewer = replace(calm, locks=tuple(k for k in calm.locks if k.id != 1))
        await screen.show(fewer, after_s=0.1)
        assert "g_cache_lock" not in "\n".join(screen.names("LOCK"))


async def test_paging_and_ends_in_a_long_list() -> None:
    async with opened(scenarios.many()) as screen:
        first: list[Lock] = list(scenarios.many().locks)
        await screen.keys("end")
        assert screen.locks.current == first[-1].id
        await screen.keys("home")
        assert screen.locks.current == first[0].id
        await screen.keys("pagedown")
        assert screen.locks.current == first[screen.locks.page - 1].id
        assert "of 1000" in screen.text
