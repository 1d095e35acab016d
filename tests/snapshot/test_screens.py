"""Pictures of the screen: every theme, three sizes of terminal, every kind of snapshot."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from textual.app import App
from unit.builders import scenarios as pictures

from locktop.collector.errors import LocktopError
from locktop.collector.linux.ptrace_access import HOW_TO_PRELOAD
from locktop.collector.model import Snapshot
from locktop.collector.profile import vsperf_report
from locktop.collector.profile.profile import ReportProfile
from locktop.collector.sources.base import Source
from locktop.collector.sources.discover import Candidate
from locktop.tui.app import CallTreeApp, LocktopApp
from locktop.tui.screens.process_picker import PickerApp
from locktop.tui.themes import shipped_names

SIZES = [(80, 24), (120, 40), (200, 60)]
KINDS: dict[str, Callable[[], Snapshot]] = {
    "normal": pictures.normal,
    "deadlock": pictures.deadlock,
    "many": pictures.many,
    "ended": pictures.ended,
    "empty": pictures.empty,
    "hostile": pictures.hostile,
}

SnapCompare = Callable[..., bool]


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The picture must not depend on where the tests run."""
    for name in ("NO_COLOR", "SSH_CONNECTION", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def app_over(snapshot: Snapshot, theme: str = "night") -> App[int]:
    return LocktopApp(pictures.HandFeed(snapshot), theme, environ={}, now=lambda: 0.0)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("theme", shipped_names())
def test_theme(theme: str, size: tuple[int, int], snap_compare: SnapCompare) -> None:
    assert snap_compare(app_over(pictures.deadlock(), theme), terminal_size=size)


@pytest.mark.parametrize(
    ("kind", "size"),
    [
        ("normal", (80, 24)),
        ("normal", (120, 40)),
        ("normal", (200, 60)),
        ("many", (80, 24)),
        ("many", (120, 40)),
        ("ended", (120, 40)),
        ("empty", (80, 24)),
        ("hostile", (120, 40)),
    ],
)
def test_kind(kind: str, size: tuple[int, int], snap_compare: SnapCompare) -> None:
    assert snap_compare(app_over(KINDS[kind]()), terminal_size=size)


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("threads", ["tab", "down"]),
        ("details", ["enter", "pagedown"]),
        ("deadlock", ["d"]),
        ("filter", ["slash", *"cache"]),
        ("help", ["question_mark"]),
        ("paused", ["p", "i"]),
        ("level", ["L", "down"]),
    ],
)
def test_keys_on_a_small_terminal(name: str, keys: list[str], snap_compare: SnapCompare) -> None:
    assert snap_compare(app_over(pictures.deadlock()), terminal_size=(80, 24), press=keys)


@pytest.mark.parametrize("size", [(80, 24), (200, 60)], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize(
    ("name", "keys"), [("closed", ["down"]), ("open", ["down", "right", "down", "down"])]
)
def test_class_of_locks(
    name: str, keys: list[str], size: tuple[int, int], snap_compare: SnapCompare
) -> None:
    assert snap_compare(app_over(pictures.fleet()), terminal_size=size, press=keys)


@pytest.mark.parametrize("size", [(80, 24), (200, 60)], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize(
    ("name", "keys"), [("closed", ["tab"]), ("open", ["tab", "i", "right", "down"])]
)
def test_group_of_threads(
    name: str, keys: list[str], size: tuple[int, int], snap_compare: SnapCompare
) -> None:
    assert snap_compare(app_over(pictures.pools()), terminal_size=size, press=keys)


@pytest.mark.parametrize("size", [(80, 24), (200, 60)], ids=lambda size: f"{size[0]}x{size[1]}")
def test_potential_deadlocks(size: tuple[int, int], snap_compare: SnapCompare) -> None:
    assert snap_compare(app_over(pictures.orders()), terminal_size=size, press=["d"])


def test_potential_deadlocks_beside_one_that_is_there(snap_compare: SnapCompare) -> None:
    app = app_over(pictures.orders(pictures.deadlock()))
    assert snap_compare(app, terminal_size=(120, 40), press=["d", "d"])


def test_a_pattern_of_no_lock(snap_compare: SnapCompare) -> None:
    assert snap_compare(app_over(pictures.oversubscribed()), terminal_size=(80, 24))


@pytest.mark.parametrize("theme", shipped_names())
def test_choice_of_a_level(theme: str, snap_compare: SnapCompare) -> None:
    assert snap_compare(app_over(pictures.normal(), theme), terminal_size=(80, 24), press=["L"])


@pytest.mark.parametrize("size", [(80, 24), (200, 60)], ids=lambda size: f"{size[0]}x{size[1]}")
def test_callers(size: tuple[int, int], snap_compare: SnapCompare) -> None:
    keys = ["c", "i", "down", "down"]
    assert snap_compare(app_over(pictures.deadlock()), terminal_size=size, press=keys)


def test_callers_of_one_function(snap_compare: SnapCompare) -> None:
    keys = ["c", "down", "enter"]
    assert snap_compare(app_over(pictures.deadlock()), terminal_size=(80, 24), press=keys)


def test_callers_in_a_report(snap_compare: SnapCompare) -> None:
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
    assert snap_compare(app, terminal_size=(80, 24))


def test_no_color(monkeypatch: pytest.MonkeyPatch, snap_compare: SnapCompare) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = LocktopApp(
        pictures.HandFeed(pictures.deadlock()), "night", environ={"NO_COLOR": "1"}, now=lambda: 0.0
    )
    assert snap_compare(app, terminal_size=(80, 24))


def no_attach(pid: int) -> Source:
    raise LocktopError(f"no such process: {pid}")


def test_picker(snap_compare: SnapCompare) -> None:
    found = [
        Candidate(311, "store", "store --port 7000", "app", 24, True, ""),
        Candidate(1, "init", "/sbin/init", "root", 1, False, "it runs without the library"),
        Candidate(88, "tool", "tool [bold]x", "app", 2, False, "tool is statically linked"),
    ]
    assert snap_compare(PickerApp(lambda: found, no_attach, "night"), terminal_size=(80, 24))


def test_picker_where_nothing_can_be_watched(snap_compare: SnapCompare) -> None:
    without = f"it runs without the library; {HOW_TO_PRELOAD}"
    static = "it is statically linked, so no library can be preloaded into it"
    found = [
        Candidate(1, "init", "/sbin/init", "root", 1, False, without),
        Candidate(88, "tool", "tool --serve", "app", 2, False, static),
    ]
    assert snap_compare(PickerApp(lambda: found, no_attach, "night"), terminal_size=(80, 24))
