"""Copies: what is copied, the file, the limit of the terminal, and the messages."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.driven import Screen, opened
from unit.builders import scenarios

from locktop.collector.render.formats import SNAPSHOT_FORMATS
from locktop.tui.terminal.clipboard import MAX_BYTES
from locktop.tui.widgets.list_screen import ListScreen


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the copies, in a directory of the test."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "locktop" / "copied.txt"


def sent_by(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The texts that the app sends from now on."""
    sent: list[bytes] = []
    monkeypatch.setattr(screen.app, "send_to_clipboard", lambda data: sent.append(data) or "")
    return sent


async def test_a_row_has_all_columns_at_any_width(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(size=(80, 24)) as screen:
        sent = sent_by(screen, monkeypatch)
        await screen.keys("y")
        await screen.says("Copied the row: sent to the terminal; also in ")
        assert sent == [file.read_bytes()]
        text = file.read_text()
        assert "\n" not in text
        for part in ("LOCK g_cache_lock", "HELD BY worker-2", "WAITERS 2", "HELD AT cache_put"):
            assert part in text
        assert file.stat().st_mode & 0o777 == 0o600


async def test_the_details_are_copied_with_whole_stacks_and_lines(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(scenarios.deadlock(), size=(80, 24)) as screen:
        sent_by(screen, monkeypatch)
        await screen.keys("d", "Y")
        await screen.says("Copied the details: sent to the terminal")
        lines = file.read_text().splitlines()
        for number in range(3):
            assert any(f"philosopher-{number} ({4730 + number})" in line for line in lines)
        assert max(map(len, lines)) > 80, "the lines are not wrapped"


async def test_the_report_is_the_one_that_is_saved(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened() as screen:
        sent = sent_by(screen, monkeypatch)
        await screen.keys("ctrl+y")
        await screen.says("Copied the report: sent to the terminal; also in ")
        assert sent == [file.read_bytes()]
        assert file.read_bytes() == SNAPSHOT_FORMATS.render("text", scenarios.normal())


async def test_the_call_tree_copies_its_own_report(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened() as screen:
        sent_by(screen, monkeypatch)
        await screen.keys("c", "ctrl+y")
        await screen.says("Copied the report: sent to the terminal; also in ")
        assert "callers" in file.read_text().lower()


@pytest.mark.parametrize("size", [MAX_BYTES, MAX_BYTES + 1])
async def test_a_text_that_is_too_large_for_terminals_goes_to_the_file_alone(
    file: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    async with opened() as screen:
        sent = sent_by(screen, monkeypatch)
        monitor = screen.app.screen
        assert isinstance(monitor, ListScreen)
        text = "x" * size
        monitor.copier.copy("the text", lambda: text)
        if size > MAX_BYTES:
            await screen.says("Copied the text: larger than 74 KB, so not sent to the terminal; in")
            assert sent == []
        else:
            await screen.says("Copied the text: sent to the terminal; also in")
            assert sent == [text.encode()]
        assert file.read_bytes() == text.encode()


async def test_without_a_directory_the_terminal_alone_gets_the_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "none"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    async with opened() as screen:
        sent = sent_by(screen, monkeypatch)
        await screen.keys("y")
        await screen.says("Copied the row: sent to the terminal; no file: there is no directory")
        assert len(sent) == 1


async def test_without_a_row_there_is_nothing_to_copy(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened() as screen:
        sent = sent_by(screen, monkeypatch)
        await screen.keys("slash", *"nowhere", "enter", "y")
        await screen.says("Nothing to copy: the row is not on this screen.")
        assert sent == []
        assert not file.exists()
