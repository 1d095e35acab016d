"""The command that opens a line in the editors that are known."""

from __future__ import annotations

from pathlib import Path

import pytest

from locktop.tui.terminal.editor import editor_command

FILE = Path("/src/a b.c")


def command(tmp_path: Path, name: str, value: str, line: int = 7) -> list[str]:
    """The arguments for an editor that exists under that name."""
    (tmp_path / name).write_text("")
    (tmp_path / name).chmod(0o755)
    environ = {"VISUAL": value, "EDITOR": "never", "PATH": str(tmp_path)}
    return editor_command(environ, FILE, line)


@pytest.mark.parametrize(
    "name", ["vi", "vim", "nvim", "nano", "emacs", "emacsclient", "micro", "kak", "less", "other"]
)
def test_most_editors_take_the_line_before_the_file(tmp_path: Path, name: str) -> None:
    assert command(tmp_path, name, name) == [name, "+7", str(FILE)]


@pytest.mark.parametrize("name", ["hx", "helix", "subl"])
def test_some_editors_take_the_line_behind_the_file(tmp_path: Path, name: str) -> None:
    assert command(tmp_path, name, name) == [name, f"{FILE}:7"]


@pytest.mark.parametrize("name", ["code", "codium"])
def test_the_family_of_vs_code_takes_an_option(tmp_path: Path, name: str) -> None:
    assert command(tmp_path, name, f"{name} --wait") == [name, "--wait", "-g", f"{FILE}:7"]


def test_the_editor_may_have_a_path_and_arguments(tmp_path: Path) -> None:
    (tmp_path / "bin dir").mkdir()
    path = tmp_path / "bin dir" / "hx"
    path.write_text("")
    path.chmod(0o755)
    found = editor_command({"EDITOR": f"'{path}' -v"}, FILE, 7)
    assert found == [str(path), "-v", f"{FILE}:7"]


def test_without_a_line_the_file_is_opened(tmp_path: Path) -> None:
    assert command(tmp_path, "vim", "vim", line=0) == ["vim", str(FILE)]


@pytest.mark.parametrize("value", ["no-such-editor", "'unfinished", " "])
def test_an_editor_that_cannot_be_found_gives_no_command(tmp_path: Path, value: str) -> None:
    assert editor_command({"VISUAL": value, "PATH": str(tmp_path)}, FILE, 7) == []
