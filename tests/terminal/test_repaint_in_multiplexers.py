"""In tmux and screen, too, the changes that were sent add up to the whole screen."""

from __future__ import annotations

import json
import os
import select
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.emulator import Appearance
from support.pty_tool import PtyTool
from support.terminal import HERE, LONG_ENOUGH_S

Need = Callable[..., Path]
PAINT_ALL = "\x0c"
#: Rows of lines, of bars and of blanks come and go, and rows move.
WALK = ("j", "?", "\x1b[6~", "q", "\x10", "s", "\x1b", "z", "z", "1", "3")
#: The app as on another host, which an SSH connection from the multiplexer leads to.
REMOTE = "env -u TMUX -u STY SSH_CONNECTION='192.0.2.1 1 192.0.2.2 22'"


class Pane:
    """The child of tests/terminal/ in a multiplexer, which reads its commands from a pipe."""

    def __init__(self, directory: Path) -> None:
        """``directory``: for the pipes."""
        self._pipes = [directory / name for name in ("commands", "answers")]
        for pipe in self._pipes:
            os.mkfifo(pipe)
        commands, answers = self._pipes
        # Neither waits for the child to open the other end.
        self._commands = os.open(commands, os.O_RDWR)
        self._answers = os.open(answers, os.O_RDONLY | os.O_NONBLOCK)

    def command(self, before: str = "") -> list[str]:
        """Return the command that the multiplexer runs; ``before``: a command that runs it."""
        commands, answers = self._pipes
        child = shlex.join([sys.executable, str(HERE / "child.py"), "3", "4", str(LONG_ENOUGH_S)])
        variables = f"TEST_PARENT=$PPID PYTHONPATH={shlex.quote(str(HERE.parent))}"
        pipes = f"3< {shlex.quote(str(commands))} 4> {shlex.quote(str(answers))}"
        return ["sh", "-c", f"exec {before or 'env'} {variables} {child} {pipes}"]

    def tell(self, command: str) -> dict[str, Any]:
        """Send a command; return the answer that comes after all output of the app."""
        os.write(self._commands, f"{command}\n".encode())
        line = b""
        while not line.endswith(b"\n"):
            assert select.select([self._answers], [], [], LONG_ENOUGH_S)[0], "no answer"
            part = os.read(self._answers, 65536)
            assert part, line
            line += part
        assert line.startswith(b"{"), line.decode()
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """Close the pipes."""
        os.close(self._commands)
        os.close(self._answers)


@pytest.fixture
def pane(tmp_path: Path) -> Iterator[Pane]:
    opened = Pane(tmp_path)
    yield opened
    opened.close()


@pytest.fixture(params=["tmux-256color", "xterm-256color", "remote", "remote screen"])
def tmux(
    request: pytest.FixtureRequest, need: Need, tmp_path: Path, pane: Pane
) -> Iterator[PtyTool]:
    """tmux tells the app this name of a terminal; xterm-256color has a false description."""
    names = {"remote": "tmux-256color", "remote screen": "screen"}
    name = names.get(request.param, request.param)
    server = [str(need("tmux")), "-S", str(tmp_path / "socket"), "-f", "/dev/null", "-u"]
    options = ["set", "-g", "default-terminal", name, ";", "set", "-g", "status", "off"]
    child = pane.command(REMOTE if request.param in names else "")
    command = ["start-server", ";", *options, ";", "new-session", *child]
    with PtyTool([*server, *command], environment={"XDG_CONFIG_HOME": str(tmp_path)}) as opened:
        yield opened
        subprocess.run([*server, "kill-server"], check=False)


@pytest.fixture(params=["here", "remote"])
def gnu_screen(
    request: pytest.FixtureRequest, need: Need, tmp_path: Path, pane: Pane
) -> Iterator[PtyTool]:
    directory = tmp_path / "screens"
    directory.mkdir(mode=0o700)
    environ = {"SCREENDIR": str(directory), "XDG_CONFIG_HOME": str(tmp_path)}
    environ["COLORTERM"] = ""  # screen 4 takes the parts of such a colour for other styles
    screen = [str(need("screen")), "-S", "repaint"]
    child = pane.command(REMOTE if request.param == "remote" else "")
    try:
        with PtyTool([*screen, "-c", "/dev/null", "-U", *child], environment=environ) as opened:
            yield opened
    finally:  # the session outlives its terminal
        subprocess.run([*screen, "-X", "quit"], env={**os.environ, **environ}, check=False)


def press(tool: PtyTool, pane: Pane, key: str) -> None:
    """Type a key, and wait until the app has painted its effect."""
    before = pane.tell("settle")["queued"]
    tool.press(key)
    while pane.tell("settle")["queued"] == before:
        pass  # the key has not come through the multiplexer yet


def cells(tool: PtyTool, pane: Pane) -> list[list[Appearance]]:
    """The cells of the outer terminal after all output of the app, but for the first cell."""
    sign = pane.tell("mark")["sign"]
    tool.until(lambda text: text.startswith(sign), "the sign behind all output")
    first, *others = tool.appearances
    return [first[1:], *others]


def check(tool: PtyTool, pane: Pane) -> None:
    """Compare the cells after each key with those of a whole painting."""
    tool.shows("shard0.mutex")
    for key in WALK:
        press(tool, pane, key)
        changed = cells(tool, pane)
        press(tool, pane, PAINT_ALL)
        whole = cells(tool, pane)
        assert "─────" in tool.text, tool.text
        assert "qqq" not in tool.text, tool.text
        wrong = [y for y, row in enumerate(whole) if row != changed[y]]
        assert not wrong, (key, wrong, changed, tool.text)
        press(tool, pane, PAINT_ALL)  # over the sign, which rows that move would take along


def test_tmux_shows_what_a_whole_painting_shows(tmux: PtyTool, pane: Pane) -> None:
    check(tmux, pane)


def test_gnu_screen_shows_what_a_whole_painting_shows(gnu_screen: PtyTool, pane: Pane) -> None:
    check(gnu_screen, pane)
