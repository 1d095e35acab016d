"""The details panel: what it folds, and the room that it has."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from support.driven import Screen, opened
from unit.builders import records, scenarios

from locktop.collector.model import Frame, Snapshot
from locktop.tui.screens.monitor import MonitorScreen

OUTER = tuple(
    Frame(0x7F0000001000, name, None, None, "libc.so.6", 0x89000)
    for name in ("start_thread", "clone3")
)


def deep() -> Snapshot:
    """Stacks that end with two functions of the C library."""
    stacks = {id_: (*frames[:-1], *OUTER) for id_, frames in records.STACKS.items()}
    return replace(scenarios.normal(), stacks=stacks)


async def test_details_on_the_whole_screen_unfold_the_standard_library() -> None:
    async with opened(deep(), size=(80, 30)) as screen:
        await screen.keys("tab", "enter")
        assert "clone3" in screen.text
        assert "frames of the standard library" not in screen.text
        await screen.keys("escape")
        assert "clone3" not in screen.text


async def test_details_beside_the_lists_fold_the_standard_library() -> None:
    async with opened(deep(), size=(200, 60)) as screen:
        await screen.keys("tab", "enter")
        assert "… 2 frames of the standard library" in screen.text
        await screen.keys("7")
        assert "clone3" in screen.text


def rows_of(screen: Screen) -> tuple[int, int]:
    """Return the rows of the list, blank ones too, and the rows of the details."""
    titles = [i for i, line in enumerate(screen.lines) if line.startswith(("─ ", "▶ "))]
    below = len(screen.lines) - 1  # the footer
    return titles[1] - titles[0] - 2, below - titles[1] - 1


async def test_the_details_get_the_rows_that_the_list_leaves_blank() -> None:
    """At 80x24 the list of locks would keep ten rows, whether or not it needs them."""
    calm = scenarios.normal()
    few = replace(calm, locks=tuple(lock for lock in calm.locks if not lock.idle)[:3])
    async with opened(few, size=(80, 24)) as screen:
        few_rows, room = rows_of(screen)
        assert few_rows == 3
        many = tuple(records.lock(900 + i, f"g_lock_{i}", contended=1) for i in range(40))
        await screen.show(replace(calm, locks=many))
        many_rows, less_room = rows_of(screen)
        assert many_rows > 5
        assert many_rows + less_room == few_rows + room
        await screen.show(few)
        assert rows_of(screen) == (few_rows, room)


async def test_a_few_rows_that_come_and_go_do_not_move_the_details() -> None:
    calm = scenarios.normal()
    locks = tuple(records.lock(900 + i, f"g_lock_{i}", contended=1) for i in range(8))
    async with opened(replace(calm, locks=locks), size=(80, 24)) as screen:
        before = rows_of(screen)
        await screen.show(replace(calm, locks=locks[:6]))
        assert rows_of(screen) == before


async def test_right_opens_the_lines_with_a_mark_and_left_closes_them() -> None:
    async with opened(scenarios.normal(), size=(80, 24)) as screen:
        await screen.keys("enter")
        assert "waiters   ▸ 2: worker-0" in screen.text
        await screen.keys("right")
        assert "waiters   ▾ 2: worker-0" in screen.text
        assert "           worker-1 81.2ms  cache_" in screen.text
        await screen.keys("left")
        assert "▸ 2: worker-0" in screen.text
        await screen.keys("right", "enter", "escape")
        assert "▸ 2: worker-0" in screen.text, "closed again on the way back"


async def test_lines_from_before_the_layout_are_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """A narrow panel shows no more than an ellipsis of each line.

    The screen is paused, so no snapshot draws the panel again.
    """
    async with opened(size=(10, 40)) as screen:
        await screen.keys("1", "p")
        assert "Worst lock" not in screen.text
        # As if the screen had drawn the panel before its layout.
        monkeypatch.setattr(MonitorScreen, "on_resize", lambda self, event: None)
        await screen.resize(120, 40)
        await screen.says("Worst lock")
        assert all(line.strip() != "…" for line in screen.lines)
