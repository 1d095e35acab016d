"""The key of the editor on a pty: the editor has the terminal, and the screen comes back."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.terminal import LONG_ENOUGH_S, Terminal

#: Says how it was called, and ends when the user has typed a line.
_EDITOR = """#!/bin/sh
echo "editing $*"
[ -t 0 ] && [ -t 1 ] && echo "on a terminal"
stty -a | tr ';' '\\n' | grep -o -- '-\\?icanon'
read line
echo "read $line"
exit "${EDITOR_STATUS:-0}"
"""

Opened = Callable[..., Terminal]


@pytest.fixture
def editor(tmp_path: Path) -> Path:
    path = tmp_path / "my-editor"
    path.write_text(_EDITOR)
    path.chmod(0o755)
    return path


@pytest.fixture
def opened() -> Iterator[Opened]:
    with ExitStack() as stack:

        def open_terminal(**variables: str) -> Terminal:
            terminal = Terminal("hands_child.py", variables=variables)
            stack.callback(terminal.close)
            terminal.wait_text("g_table_lock", 0)
            return terminal

        yield open_terminal


def test_the_editor_has_the_terminal_and_the_screen_comes_back(
    tmp_path: Path, editor: Path, opened: Opened
) -> None:
    source = tmp_path / "table.c"
    source.write_text("int line;\n" * 300)
    terminal = opened(VISUAL=str(editor), TEST_SOURCE=str(source))
    mark = terminal.received
    terminal.press("e")
    terminal.wait_text("editing ", mark)
    terminal.wait_text(str(source), mark)
    terminal.wait_text("on a terminal", mark)
    terminal.wait_text("icanon", mark)
    output = terminal.since(mark)
    assert b"-icanon" not in output, "the terminal is in the mode of a shell"
    assert output.index(b"\x1b[?1049l") < output.index(b"editing ")
    found = re.search(rb"editing \+(\d+) " + re.escape(os.fsencode(source)), output)
    assert found, output[-200:]
    assert 0 < int(found[1]) <= 300
    mark = terminal.received
    terminal.press("done\n")
    terminal.wait_text("read done", mark)
    # From the first line to the last one, although no line has changed.
    for text in ("\x1b[?1049h", "Overview", "g_table_lock", "Details", "sort"):
        terminal.wait_text(text, mark)
    # Keys work again.
    mark = terminal.received
    terminal.press("s")
    terminal.wait_text("by contended", mark)
    terminal.press("q")
    assert terminal.process.wait(LONG_ENOUGH_S) == 0


def test_a_failure_of_the_editor_is_a_message(tmp_path: Path, editor: Path, opened: Opened) -> None:
    source = tmp_path / "table.c"
    source.write_text("int line;\n")
    terminal = opened(EDITOR=str(editor), VISUAL="", EDITOR_STATUS="3", TEST_SOURCE=str(source))
    mark = terminal.received
    terminal.press("e")
    terminal.wait_text("editing ", mark)
    terminal.press("\n")
    terminal.wait_text("ended with status 3", mark)


def test_control_c_in_the_editor_does_not_end_the_screen(
    tmp_path: Path, editor: Path, opened: Opened
) -> None:
    source = tmp_path / "table.c"
    source.write_text("int line;\n")
    terminal = opened(VISUAL=str(editor), TEST_SOURCE=str(source))
    mark = terminal.received
    terminal.press("e")
    terminal.wait_text("icanon", mark)
    terminal.process.send_signal(2)
    terminal.press("on\n")
    terminal.wait_text("read on", mark)
    terminal.wait_text("\x1b[?1049h", mark)
    terminal.press("q")
    assert terminal.process.wait(LONG_ENOUGH_S) == 0


def test_a_source_file_that_is_not_here_is_a_message_with_its_path(
    editor: Path, opened: Opened
) -> None:
    terminal = opened(VISUAL=str(editor), TEST_SOURCE="/build/far/away/table.c")
    mark = terminal.received
    terminal.press("e")
    terminal.wait_text("The source file is not on this machine: /build/far/away/table.c:", mark)
    assert b"editing" not in terminal.since(mark)


def test_a_source_file_without_a_directory_opens_nothing(editor: Path, opened: Opened) -> None:
    terminal = opened(VISUAL=str(editor), TEST_SOURCE="table.c")
    mark = terminal.received
    terminal.press("e")
    terminal.wait_text("The directory of the source file is not known: table.c:", mark)
    assert b"editing" not in terminal.since(mark)


def test_without_an_editor_the_screen_says_what_to_set(tmp_path: Path, opened: Opened) -> None:
    source = tmp_path / "table.c"
    source.write_text("int line;\n")
    terminal = opened(VISUAL="", EDITOR="no-such-editor -x", TEST_SOURCE=str(source))
    mark = terminal.received
    terminal.press("e")
    terminal.wait_text("There is no editor: set VISUAL or EDITOR to one.", mark)
