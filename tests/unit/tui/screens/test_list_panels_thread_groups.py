"""Thread groups on the screen: one row each, opened and closed by keys."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from support.driven import Screen, opened
from unit.builders import records, scenarios

from locktop.collector.model import Kind, Snapshot, ThreadState


def rows(screen: Screen) -> list[str]:
    """The rows of the list of threads."""
    lines = screen.lines
    start = next(i for i, line in enumerate(lines) if line.startswith(" THREAD "))
    end = next(i for i, line in enumerate(lines) if i > start and line.startswith(("─", "▶")))
    return [line for line in lines[start + 1 : end] if line.strip()]


async def test_five_hundred_threads_of_six_pools_fit_on_a_small_screen() -> None:
    async with opened(scenarios.pools(), size=(80, 24)) as screen:
        await screen.keys("tab")
        assert [row[:16].strip() for row in rows(screen)] == [
            "*▸ accept-# x83", "*▸ db-# x83", "*▸ log-# x83", "main9001", "main9002",
        ]  # fmt: skip
        assert "249 idle hidden (i)" in screen.text
        assert rows(screen)[0].split()[3:6] == ["waiting", "g_accept_lock", "84.0s"], (
            "the row has the longest wait"
        )
        await screen.keys("i")
        assert [row[:16].strip() for row in rows(screen)][5:] == [
            "▸ http-# x83", "▸ cache-# x83", "▸ gc-# x83",
        ]  # fmt: skip


async def test_a_group_is_opened_and_closed_and_the_cursor_stays() -> None:
    async with opened(scenarios.pools(each=4), size=(120, 50)) as screen:
        await screen.keys("tab", "right")
        assert [row.split()[0] for row in rows(screen)][:6] == [
            "*▾", "*", "*", "*", "*", "*▸",
        ]  # fmt: skip
        assert "accept-3" in rows(screen)[1], "accept-3 waits longest"
        await screen.keys("right", "down")
        assert screen.threads.current == 2
        assert "of a thread" in screen.text
        await screen.show(replace(scenarios.pools(each=4, duration_s=3.0)))
        assert screen.threads.current == 2
        await screen.keys("left")
        assert "of threads that do the same" in screen.text
        await screen.keys("left")
        assert "▸ accept-#" in rows(screen)[0]


async def test_a_large_group_has_fifty_rows_and_counts_the_other_threads() -> None:
    async with opened(scenarios.pools(), size=(120, 150)) as screen:
        await screen.keys("tab", "right", "end")
        assert any("and 33 more" in row for row in rows(screen))


async def test_group_details_list_all_threads() -> None:
    async with opened(scenarios.pools(each=4), size=(200, 60)) as screen:
        await screen.keys("tab")
        text = screen.text
        assert "accept-#  4 threads  waiting" in text
        assert "waits for g_accept_lock (mutex), the longest 5.00s" in text
        assert "counts as a wait for a lock (idle rule “mutex”)" in text
        assert "cache_get" in text
        assert "5.00s  accept-3  3" in text


async def test_a_filter_finds_one_thread_of_a_group() -> None:
    async with opened(scenarios.pools(), size=(120, 40)) as screen:
        await screen.keys("tab", "slash", *"log-17", "enter")
        found = rows(screen)
        assert [row.split()[0] for row in found] == ["*▾", "*"]
        assert "4017" in found[1]


async def test_the_row_of_a_group_stays_while_its_threads_change_states() -> None:
    def scan(waiting: int) -> Snapshot:
        threads = tuple(
            records.thread(
                10 + i, f"worker-{i}", ThreadState.WAITING if i < waiting else ThreadState.RUNNING,
                waiting_for=records.wait(1 + i % 2, Kind.MUTEX, 0.1) if i < waiting else None,
                wait_share=0.5,
            )
            for i in range(8)
        )  # fmt: skip
        return records.snapshot(threads, (records.lock(1, "g_a"), records.lock(2, "g_b")))

    few = replace(scan(3), threads=scan(3).threads[:7])
    async with opened(few, size=(120, 40)) as screen:
        await screen.keys("tab")
        assert len(rows(screen)) == 7, "so few threads make no group"
    async with opened(scan(3), size=(120, 40)) as screen:
        await screen.keys("tab")
        (row,) = rows(screen)
        assert row.split()[:6] == ["*▸", "worker-#", "x8", "3", "wait", "g_a"]
        assert "g_a +1" in row
        before = screen.threads.current
        for waiting, says in ((5, "5 wait"), (0, "running"), (8, "waiting")):
            await screen.show(scan(waiting))
            assert says in rows(screen)[0]
            assert screen.threads.current == before


async def test_each_deadlocked_thread_has_its_own_row() -> None:
    async with opened(scenarios.deadlock(), size=(120, 50)) as screen:
        assert "▸ philosopher" not in screen.text
        assert sum("*" in row or "!" in row for row in rows(screen)) >= 3


@pytest.mark.parametrize("size", [(80, 24), (40, 10), (200, 60)])
async def test_no_line_of_the_thread_list_is_too_long(size: tuple[int, int]) -> None:
    async with opened(scenarios.pools(), size=size) as screen:
        await screen.keys("tab", "i", "right", "down")
        assert all(len(line) <= size[0] for line in screen.lines)
