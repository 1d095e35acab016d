"""The first view, the order, the filter and the columns of the screen."""

from __future__ import annotations

import pytest
from support.driven import opened
from unit.builders import scenarios

from locktop.collector.config.settings import SavedView
from locktop.collector.errors import LocktopError
from locktop.tui.monitor_views import VIEWS
from locktop.tui.screen_start import ScreenStart, start_of

SLOW = SavedView(view="threads", filter="wait>10ms", sort="wait", columns=("THREAD", "SINCE"))


def test_a_saved_view_gives_what_the_options_leave_open() -> None:
    assert start_of("slow", "", "", {}, {"slow": SLOW}) == ScreenStart(
        "threads", "wait", "wait>10ms", {"threads": ("THREAD", "SINCE")}, {"slow": SLOW}
    )
    found = start_of("slow", "cpu", "kind:mutex", {"threads": ("TID",)}, {"slow": SLOW})
    assert found == ScreenStart(
        "threads", "cpu", "kind:mutex", {"threads": ("TID",)}, {"slow": SLOW}
    )


def test_an_unknown_view_is_an_error_that_names_the_views() -> None:
    with pytest.raises(LocktopError, match=r"--view lock: there is no such view; .*slow"):
        start_of("lock", "", "", {}, {"slow": SLOW})
    with pytest.raises(LocktopError, match="--view other: there is no such view"):
        start_of("slow", "", "", {}, {"slow": SavedView(view="other")})


@pytest.mark.parametrize("view", [view for view in VIEWS if view.is_body], ids=lambda one: one.name)
async def test_the_screen_begins_with_the_view(view: object) -> None:
    name, digit = view.name, view.digit  # type: ignore[attr-defined]
    async with opened(start=ScreenStart(name)) as screen:
        assert f"[{digit} " in screen.first


async def test_the_screen_begins_with_order_filter_and_columns() -> None:
    columns = {"locks": ("WAITERS", "lock")}
    start = ScreenStart("locks", "name", "table", columns)
    async with opened(start=start) as screen:
        heading = next(line for line in screen.lines if line.startswith(" WAITERS"))
        assert heading.split() == ["WAITERS", "LOCK"]
        assert "with “table”" in screen.text
        await screen.keys("escape", "escape")
        assert "by name" in screen.text


async def test_an_unknown_sort_key_is_a_message() -> None:
    async with opened(scenarios.normal(), start=ScreenStart(sort="colour")) as screen:
        await screen.says("no sort key 'colour': ")
