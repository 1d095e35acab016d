"""A picture of each view in two sizes, and one of each theme, as SVG files.

A test compares what the app draws with a file of ``__snapshots__``. ``pytest tests/snapshot
--snapshot-update`` writes the files anew. The texts of the screens are asserted in
``tests/unit/tui/``.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from msgspec.structs import replace
from support.driven import PATIENCE_S, settle
from support.feed import HandFeed, text_of
from textual.app import App
from textual.pilot import Pilot
from unit.builders import scenarios
from unit.builders.inside_samples import with_samples
from unit.builders.time_lines import FixedPast, relay

from locktop.collector.model import Snapshot
from locktop.tui.app import LocktopApp
from locktop.tui.monitor_views import VIEWS, MonitorView
from locktop.tui.themes import shipped_names

SMALL, USUAL = (80, 24), (120, 40)
#: A text of each view that reads the past, when it has read it.
READY = {"timeline": "WAITED", "history": "callers"}

SnapCompare = Callable[..., bool]


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the terminal of the user who runs the tests."""
    for name in ("NO_COLOR", "SSH_CONNECTION", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def app_over(snapshot: Snapshot, theme: str = "night", past: FixedPast | None = None) -> App[int]:
    return LocktopApp(HandFeed(snapshot), theme, moments=past, environ={}, now=lambda: 0.0)


def scenario_of(view: MonitorView) -> tuple[Snapshot, FixedPast | None]:
    """Return what the picture of a view shows: a snapshot, and a past where it needs one."""
    if view.name in READY:
        past = relay()
        return past.snapshot_at(past.times_ns()[-1]), past
    if view.name == "deadlocks":
        deadlock = scenarios.deadlock()
        return replace(deadlock, lock_order=scenarios.orders().lock_order), None
    snapshot = scenarios.normal()
    for lock in snapshot.locks:
        snapshot = with_samples(snapshot, lock.id)
    return snapshot, None


@pytest.mark.parametrize("size", [SMALL, USUAL], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_each_view(view: MonitorView, size: tuple[int, int], snap_compare: SnapCompare) -> None:
    async def open_view(pilot: Pilot[int]) -> None:
        await settle(pilot)
        await pilot.press(view.digit)
        end = time.monotonic() + PATIENCE_S
        while READY.get(view.name, "") not in text_of(pilot.app):
            assert time.monotonic() < end, text_of(pilot.app)
            await pilot.pause(0.01)
        await settle(pilot)

    snapshot, past = scenario_of(view)
    app = app_over(snapshot, past=past)
    assert snap_compare(app, terminal_size=size, run_before=open_view)


@pytest.mark.parametrize("theme", shipped_names())
def test_each_theme(theme: str, snap_compare: SnapCompare) -> None:
    assert snap_compare(app_over(scenarios.deadlock(), theme), terminal_size=USUAL)
