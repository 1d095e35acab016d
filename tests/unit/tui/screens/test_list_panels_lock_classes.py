"""Classes of locks on the screen: one row each, opened and closed by keys."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from support.driven import Screen, opened, row_under_cursor, with_lock
from unit.builders import scenarios

from locktop.collector.model import Lock
from locktop.collector.render import check_report
from locktop.collector.render.text import report

CLOSED, OPEN = "▸ conn::mu  212 locks", "▾ conn::mu  212 locks"
MADE = "mutex made in conn_new (conn.c:42)"


def rows(screen: Screen) -> list[str]:
    """The first column of the list of locks."""
    lines = screen.lines
    start = next(i for i, line in enumerate(lines) if line.startswith(" LOCK "))
    end = next(i for i, line in enumerate(lines) if i > start and line.startswith(("─", "▶")))
    return [line[1:45].split(" mutex")[0].rstrip() for line in lines[start + 1 : end]]


async def opened_class(screen: Screen) -> None:
    """Open the class of connections, with the cursor on its row."""
    await screen.keys("down", "right")
    assert rows(screen)[1] == OPEN


async def test_a_class_is_one_row_with_its_sums() -> None:
    async with opened(scenarios.fleet(), size=(160, 50)) as screen:
        visible = rows(screen)
        assert visible[:2] == ["g_cache_lock", CLOSED]
        assert "▸ cache.…shards[].mu x8" in visible
        assert not any("at 0x" in name for name in visible)
        row = next(line for line in screen.lines if CLOSED in line)
        assert row[0] == "*"
        # contended, waited and held a second; waited in all, the longest; contended
        assert row.split()[5:15] == (
            ["worker-2", "-", "2", "212", "2.12s", "212%", "33m30s", "500ms", "21.2k", "2.00ms"]
        )
        title = next(line for line in screen.lines if line.startswith("▶ Locks"))
        assert "1-" in title or " 8 " in title


async def test_keys_open_and_close_a_class_with_its_worst_locks_first() -> None:
    async with opened(scenarios.fleet(), size=(160, 70)) as screen:
        await opened_class(screen)
        first = [f"  at {0x55D000001000 + (1000 + i) * 64:#x}" for i in range(3)]
        assert rows(screen)[2:5] == first
        await screen.keys("right")
        assert screen.locks.current == 1000
        await screen.keys("down", "left")
        assert rows(screen)[1] == OPEN
        assert "of a class of locks" in screen.text
        await screen.keys("left")
        assert rows(screen)[1] == CLOSED
        assert first[0] not in screen.text.split("─ Details")[0]


async def test_an_open_class_has_fifty_rows_and_counts_the_other_locks() -> None:
    async with opened(scenarios.fleet(), size=(160, 150)) as screen:
        await opened_class(screen)
        inside = [name for name in rows(screen) if name.startswith("  at 0x")]
        assert len(inside) == 50
        assert "  and 162 more" in rows(screen)
        await screen.keys("end", *["up"] * 4)  # four rows follow the count
        assert "of a class of locks" in screen.text
        await screen.keys("left", "left")
        assert rows(screen)[1] == CLOSED


async def test_the_cursor_stays_on_the_lock_inside_a_class() -> None:
    async with opened(scenarios.fleet()) as screen:
        await opened_class(screen)
        await screen.keys("down", "down")
        assert screen.locks.current == 1001
        changed = with_lock(scenarios.fleet(), 1005, wait_s=500.0)
        await screen.show(changed, after_s=0.4)
        assert screen.locks.current == 1001
        before = rows(screen)
        await screen.show(replace(changed), after_s=0.7)
        assert rows(screen) != before
        assert screen.locks.current == 1001
        assert "conn::mu  mutex" in screen.text


async def test_the_rows_of_a_class_are_sorted_with_the_list() -> None:
    async with opened(scenarios.fleet(), size=(160, 70)) as screen:
        await opened_class(screen)
        before = rows(screen)
        await screen.show(with_lock(scenarios.fleet(), 1005, wait_s=500.0), after_s=0.4)
        assert rows(screen) == before
        await screen.keys("S")
        assert rows(screen) != before


async def test_a_lock_that_gets_its_name_takes_the_cursor_to_its_class() -> None:
    unnamed = with_lock(scenarios.fleet(), 1003, name="mutex 0x55d000010ac0", wait_s=9_999.0)
    async with opened(unnamed) as screen:
        await screen.keys("up", "down", "up", "down")
        while screen.locks.current != 1003:
            await screen.keys("up")
        await screen.show(scenarios.fleet())
        assert row_under_cursor(screen.locks).startswith(f"*{CLOSED}")


async def test_a_filter_finds_a_class_and_single_locks_in_one() -> None:
    async with opened(scenarios.fleet(), size=(145, 50)) as screen:
        await screen.keys("slash", *"shards[]", "enter")
        assert rows(screen)[0] == "▸ cache.c: shards[].mu x8"
        await screen.keys("escape", "slash", *"shards[3]", "enter")
        assert rows(screen)[:3] == [
            "▾ cache.c: shards[].mu x8",
            "  cache.c: shards[3].mu",
            "",
        ]
        await screen.keys("escape")
        assert "▸ cache.c: shards[].mu x8" in rows(screen)


async def test_class_details_have_the_spread_and_the_call_sites_of_the_wait() -> None:
    async with opened(scenarios.fleet(), size=(200, 60)) as screen:
        await screen.keys("down")
        text = screen.text
        assert "212 locks, 53 of them destroyed" in text
        assert "held by   1 thread at 1 of the locks: worker-2" in text
        assert "waiters   2 threads at 1 of the locks: worker-0," in text
        assert "acquired  212,000, contended 21,200 (10%)" in text
        assert "Waited for  200 of 212 locks; 21% of the wait at the" in text
        assert "20.0s  <1% ╸          at 0x55d000010a00" in text
        assert "Waited here  1 of 2: 50% of the wait" in text


async def test_a_single_lock_is_named_with_its_address() -> None:
    fleet = scenarios.fleet()
    threads = tuple(one for one in fleet.threads if one.name != "reader")
    async with opened(replace(fleet, threads=threads), size=(200, 60)) as screen:
        assert "conn::mu at 0x55d000010a00" in screen.headline
        waiting = next(line for line in screen.lines if line.startswith("*worker-0"))
        assert "…0x55d000010a00" in waiting


async def test_only_the_rows_that_changed_are_painted(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(scenarios.fleet(), size=(160, 70)) as screen:
        await opened_class(screen)
        painted: list[int] = []
        real = screen.locks.refresh
        monkeypatch.setattr(
            screen.locks,
            "refresh",
            lambda *regions, **more: (painted.extend(r.y for r in regions), real(*regions, **more)),
        )
        await screen.show(scenarios.fleet(), after_s=0.2)
        assert painted == []
        await screen.show(with_lock(scenarios.fleet(), 1001, contended=7_777), after_s=0.2)
        assert len(painted) == 2, "the rows of the lock and of its class"


async def test_a_vanished_class_leaves_the_list() -> None:
    async with opened(scenarios.fleet()) as screen:
        await opened_class(screen)
        locks: tuple[Lock, ...] = scenarios.normal().locks
        await screen.show(replace(scenarios.normal(), locks=locks))
        assert "conn::mu" not in screen.text
        for key in ("left", "right", "left"):
            await screen.keys(key)
        assert screen.app.is_running


@pytest.mark.parametrize("size", [(80, 24), (200, 60), (40, 10)])
async def test_the_number_of_locks_of_a_class_is_never_cut_off(size: tuple[int, int]) -> None:
    long = replace(
        scenarios.fleet(),
        locks=tuple(
            replace(one, name="mutex made in connection::accept (connection_handler.cc:1042)")
            if one.name == "conn::mu"
            else one
            for one in scenarios.fleet().locks
        ),
    )
    async with opened(long, size=size) as screen:
        await screen.keys("down", "right")
        assert "x212 mutex" in screen.text
        assert all(len(line) <= size[0] for line in screen.lines)


async def test_a_class_named_by_its_init_site_shows_the_function() -> None:
    fleet = scenarios.fleet()
    locks = tuple(replace(one, name=one.name.replace("conn::mu", MADE)) for one in fleet.locks)
    async with opened(replace(fleet, locks=locks), size=(80, 24)) as screen:
        assert rows(screen)[1].startswith("▸ conn_new:42 x212")
    async with opened(replace(fleet, locks=locks), size=(145, 50)) as screen:
        assert rows(screen)[1].startswith("▸ conn_new:42  212 locks")


def test_deadlocked_locks_of_one_class_have_different_names() -> None:
    ring = scenarios.deadlock()
    locks = tuple(
        replace(one, name="conn::mu") if one.id in (10, 11, 12) else one for one in ring.locks
    )
    alike = replace(ring, locks=locks)
    lines = "\n".join(check_report.lines(alike))
    page = " ".join(report.render(alike).split())
    for id_ in (10, 11, 12):
        single = f"conn::mu at {0x55D000001000 + id_ * 64:#x}"
        assert lines.count(f"waits for mutex {single} for") == 1
        assert f"waits for mutex {single} for" in page
