"""Columns that the user chooses, and views that the user saves: both stay for the next start."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.driven import Screen, opened
from unit.builders import scenarios

from locktop.collector.config.settings import SavedView
from locktop.collector.errors import LocktopError
from locktop.tui import kept_choices
from locktop.tui.kept_choices import KeptChoices
from locktop.tui.screen_start import ScreenStart


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "locktop" / "choices.json"


def heading(screen: Screen, title: str) -> list[str]:
    return next(line for line in screen.lines if line.startswith(f" {title} ")).split()


async def kept(screen: Screen) -> None:
    await screen.app.workers.wait_for_complete()
    await screen.settle()


async def test_columns_are_chosen_and_kept(state: Path) -> None:
    async with opened(size=(120, 50)) as screen:
        before = heading(screen, "LOCK")
        await screen.keys("o")
        assert "Columns of locks" in screen.text
        assert "[x] KIND" in screen.text
        await screen.keys("down", "space", "enter")  # KIND is marked no more
        await kept(screen)
        assert heading(screen, "LOCK") == [title for title in before if title != "KIND"]
    columns = kept_choices.load()[0].columns
    assert "KIND" not in columns["locks"]
    async with opened(start=ScreenStart(columns=columns)) as screen:
        assert "KIND" not in heading(screen, "LOCK")
        await screen.keys("o", "a")
        await kept(screen)
        assert "KIND" in heading(screen, "LOCK")
    assert kept_choices.load() == (KeptChoices(), "")


async def test_a_filter_becomes_a_view_that_is_taken_and_forgotten() -> None:
    async with opened() as screen:
        await screen.keys("v")
        assert "Saved views: none yet" in screen.text
        await screen.keys("s")
        await screen.says("There is no filter to save: type one with /.")
        await screen.keys("3", "slash", *"reader", "enter", "v", "s")
        await kept(screen)
        await screen.keys("2", "escape", "escape", "v")
        assert "reader  threads, reader, by state" in screen.text
        await screen.keys("enter")
        assert "[3 Threads]" in screen.first
        assert "with “reader”" in screen.text
    assert kept_choices.load()[0].views == {
        "reader": SavedView(view="threads", filter="reader", sort="state")
    }
    views = kept_choices.load()[0].views
    async with opened(start=ScreenStart(views=views)) as screen:
        await screen.keys("v", "delete")
        await kept(screen)
        await screen.says("The view reader is forgotten.")
    assert kept_choices.load()[0].views == {}


async def test_the_tree_has_no_columns_to_choose() -> None:
    async with opened(scenarios.deadlock()) as screen:
        await screen.keys("4", "o")
        await screen.says("There is one order here, and there are no columns to choose.")


@pytest.mark.parametrize(
    "content", [b"[1]", b'{"columns": 3}', b"\xff", b'{"views": {"a": {"filter": 3}}}']
)
def test_a_damaged_file_is_one_message(content: bytes, state: Path) -> None:
    state.parent.mkdir()
    state.write_bytes(content)
    found, problem = kept_choices.load()
    assert found == KeptChoices()
    assert problem.startswith(f"{state}: no choices are kept there: ")
    assert "\n" not in problem
    with pytest.raises(LocktopError, match="no choices are kept there"):
        kept_choices.keep_columns("locks", ("WAIT",))
    assert state.read_bytes() == content, "the user may mend it"


def test_the_views_before_one_too_many_stay(state: Path) -> None:
    for number in range(200):
        kept_choices.keep_view(f"v{number}", SavedView(filter="a"))
    with pytest.raises(LocktopError, match="200 views already: forget one first"):
        kept_choices.keep_view("one more", SavedView(filter="a"))
    kept_choices.keep_view("v0", None)
    kept_choices.keep_view("one more", SavedView(filter="a"))
    assert len(kept_choices.load()[0].views) == 200


async def test_a_folder_that_cannot_be_written_is_a_message(state: Path) -> None:
    state.parent.write_text("no folder")
    async with opened() as screen:
        await screen.keys("o", "enter")
        await kept(screen)
        await screen.says("Not kept: ")
