"""In tmux and screen, too, the changes that were sent add up to the whole screen."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.emulator import Appearance
from support.pty_tool import PATIENCE_S, PtyTool
from support.tool import COMMAND

Need = Callable[..., Path]
Cells = list[list[Appearance]]
PAINT_ALL = "\x0c"
PAUSE = "p"
#: Rows of lines, of bars and of blanks come and go, and rows move.
WALK = ("j", "?", "\x1b[6~", "q", "\x10", "s", "\x1b", "z", "z", "1", "3")
#: The app as on another host, which an SSH connection from the multiplexer leads to.
REMOTE = ["env", "-u", "TMUX", "-u", "STY", "SSH_CONNECTION=192.0.2.1 1 192.0.2.2 22", COMMAND]
#: Seconds without a change, until the screen is thought to be complete.
QUIET_S = 0.3


@pytest.fixture(params=["tmux-256color", "xterm-256color", "remote", "remote screen"])
def tmux(request: pytest.FixtureRequest, need: Need, tmp_path: Path) -> Iterator[PtyTool]:
    """tmux tells the app this name of a terminal; xterm-256color has a false description."""
    names = {"remote": "tmux-256color", "remote screen": "screen"}
    tool = REMOTE if request.param in names else [COMMAND]
    name = names.get(request.param, request.param)
    server = [str(need("tmux")), "-S", str(tmp_path / "socket"), "-f", "/dev/null", "-u"]
    options = ["set", "-g", "default-terminal", name, ";", "set", "-g", "status", "off"]
    command = ["start-server", ";", *options, ";", "new-session", *tool, "demo"]
    with PtyTool([*server, *command], environment={"XDG_CONFIG_HOME": str(tmp_path)}) as opened:
        yield opened
        subprocess.run([*server, "kill-server"], check=False)


@pytest.fixture(params=["here", "remote"])
def gnu_screen(request: pytest.FixtureRequest, need: Need, tmp_path: Path) -> Iterator[PtyTool]:
    directory = tmp_path / "screens"
    directory.mkdir(mode=0o700)
    environ = {"SCREENDIR": str(directory), "XDG_CONFIG_HOME": str(tmp_path)}
    environ["COLORTERM"] = ""  # screen 4 takes the parts of such a colour for other styles
    tool = REMOTE if request.param == "remote" else [COMMAND]
    screen = [str(need("screen")), "-S", "repaint"]
    command = [*screen, "-c", "/dev/null", "-U", *tool, "demo"]
    try:
        with PtyTool(command, environment=environ) as opened:
            yield opened
    finally:  # the session outlives its terminal
        subprocess.run([*screen, "-X", "quit"], env={**os.environ, **environ}, check=False)


def settled(tool: PtyTool, other: Cells) -> Cells:
    """The cells of the outer terminal when they differ from ``other``, and then stay the same."""
    end = time.monotonic() + PATIENCE_S
    before, now = other, tool.appearances
    while now == other or now != before:
        assert time.monotonic() < end, tool.text
        time.sleep(QUIET_S)
        before, now = now, tool.appearances
    return now


def check(tool: PtyTool) -> None:
    """Compare the cells after each key with those of a whole painting."""
    # Names that come later change the screen, even while it is held still.
    tool.until(lambda text: "threads" in text and "names: " not in text, "all names")
    tool.press(PAUSE)
    tool.shows("PAUSED")
    changed = settled(tool, [])
    for key in WALK:
        tool.press(key)
        changed = settled(tool, changed)
        tool.press(PAINT_ALL)
        time.sleep(QUIET_S)  # a multiplexer may send nothing, if all cells are right
        whole = settled(tool, [])
        assert "─────" in tool.text, tool.text
        assert "qqq" not in tool.text, tool.text
        wrong = [y for y, row in enumerate(whole) if row != changed[y]]
        assert not wrong, (key, wrong, changed, tool.text)


def test_tmux_shows_what_a_whole_painting_shows(tmux: PtyTool) -> None:
    check(tmux)


def test_gnu_screen_shows_what_a_whole_painting_shows(gnu_screen: PtyTool) -> None:
    check(gnu_screen)
