"""Each screen and each theme once, as an SVG file.

A test compares what the app draws with a file of ``__snapshots__``. ``pytest tests/snapshot
--snapshot-update`` writes the files anew. The texts of the screens are asserted in
``tests/unit/tui/``.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.feed import HandFeed
from textual.app import App
from unit.builders import scenarios
from unit.builders.inside_samples import with_samples

from locktop.collector.errors import LocktopError
from locktop.collector.model import Snapshot
from locktop.collector.profile import vsperf_report
from locktop.collector.profile.profile import ReportProfile
from locktop.collector.sources.base import Source
from locktop.collector.sources.discover import Candidate
from locktop.tui.app import CallTreeApp, LocktopApp
from locktop.tui.screens.process_picker import PickerApp
from locktop.tui.themes import shipped_names

SMALL, USUAL, LARGE = (80, 24), (120, 40), (200, 60)

SnapCompare = Callable[..., bool]


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the terminal of the user who runs the tests."""
    for name in ("NO_COLOR", "SSH_CONNECTION", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def app_over(snapshot: Snapshot, theme: str = "night") -> App[int]:
    return LocktopApp(HandFeed(snapshot), theme, environ={}, now=lambda: 0.0)


@pytest.mark.parametrize("theme", shipped_names())
def test_the_monitor_follows_each_theme(theme: str, snap_compare: SnapCompare) -> None:
    assert snap_compare(app_over(scenarios.deadlock(), theme), terminal_size=USUAL)


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=lambda size: f"{size[0]}x{size[1]}")
def test_the_monitor_fits_the_terminal(size: tuple[int, int], snap_compare: SnapCompare) -> None:
    assert snap_compare(app_over(scenarios.deadlock()), terminal_size=size)


@pytest.mark.parametrize("situation", ["normal", "many", "hostile"])
def test_the_monitor_draws_each_situation(situation: str, snap_compare: SnapCompare) -> None:
    snapshot: Snapshot = getattr(scenarios, situation)()
    assert snap_compare(app_over(snapshot), terminal_size=USUAL)


@pytest.mark.parametrize(
    "keys",
    [["d"], ["question_mark"], ["L", "down"]],
    ids=["deadlock", "help", "level"],
)
def test_a_key_opens_a_panel(keys: list[str], snap_compare: SnapCompare) -> None:
    assert snap_compare(app_over(scenarios.deadlock()), terminal_size=SMALL, press=keys)


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=lambda size: f"{size[0]}x{size[1]}")
def test_the_functions_inside_a_lock_fit_the_terminal(
    size: tuple[int, int], snap_compare: SnapCompare
) -> None:
    snapshot = scenarios.normal()
    for lock in snapshot.locks:
        snapshot = with_samples(snapshot, lock.id)
    assert snap_compare(app_over(snapshot), terminal_size=size, press=["I", "down"])


def test_a_lock_class_opens(snap_compare: SnapCompare) -> None:
    keys = ["down", "right", "down", "down"]
    assert snap_compare(app_over(scenarios.fleet()), terminal_size=SMALL, press=keys)


def test_a_thread_group_opens(snap_compare: SnapCompare) -> None:
    keys = ["tab", "i", "right", "down"]
    assert snap_compare(app_over(scenarios.pools()), terminal_size=LARGE, press=keys)


def test_potential_deadlocks_have_a_panel(snap_compare: SnapCompare) -> None:
    assert snap_compare(app_over(scenarios.orders()), terminal_size=SMALL, press=["d"])


def test_the_call_tree_stands_beside_its_function(snap_compare: SnapCompare) -> None:
    keys = ["c", "i", "down", "down"]
    assert snap_compare(app_over(scenarios.deadlock()), terminal_size=LARGE, press=keys)


def test_the_call_tree_shows_one_function(snap_compare: SnapCompare) -> None:
    keys = ["c", "down", "enter"]
    assert snap_compare(app_over(scenarios.deadlock()), terminal_size=SMALL, press=keys)


def test_the_call_tree_shows_a_report(snap_compare: SnapCompare) -> None:
    rows = (
        "Type,Function Name,Inclusive Samples,Exclusive Samples,Root Function Name",
        "Root,main,100,10,main",
        "Callee,parse,60,60,main",
        "Callee,run,30,30,main",
        "Root,parse,60,60,parse",
        "Callee,broken",
    )
    report = vsperf_report.parse("\n".join(rows).encode(), "old.csv")
    app = CallTreeApp(ReportProfile(report, "old.csv"), "paper", environ={}, now=lambda: 0.0)
    assert snap_compare(app, terminal_size=SMALL)


def test_no_color_leaves_only_text(
    monkeypatch: pytest.MonkeyPatch, snap_compare: SnapCompare
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    feed = HandFeed(scenarios.deadlock())
    app = LocktopApp(feed, "night", environ={"NO_COLOR": "1"}, now=lambda: 0.0)
    assert snap_compare(app, terminal_size=SMALL)


def test_the_picker_lists_processes(snap_compare: SnapCompare) -> None:
    def no_attach(pid: int) -> Source:
        raise LocktopError(f"no such process: {pid}")

    candidates = [
        Candidate(311, "store", "store --port 7000", "app", 24, True, ""),
        Candidate(1, "init", "/sbin/init", "root", 1, False, "it runs without the library"),
        Candidate(88, "tool", "tool [bold]x", "app", 2, False, "tool is statically linked"),
    ]
    app = PickerApp(lambda: candidates, no_attach, "night", lambda _: None)
    assert snap_compare(app, terminal_size=SMALL)
