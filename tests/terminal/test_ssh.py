"""The screen over a real SSH connection: sshd and ssh of OpenSSH, on this machine."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.eventually import until
from support.keys import bytes_of, leaves_all, own_keys
from support.pty_tool import PtyTool
from support.ssh_server import SSHD, SshServer
from support.targets import Target
from support.tool import COMMAND

from locktop.collector.sources.launch import preload_environment
from locktop.tui.commands.demo import demo_program
from locktop.tui.keymap import shipped

#: The words that the screen of each action shows.
VIEWS = {
    "help": "Esc closes this",
    "callers": "Callers",
    "inside": "Inside",
    "timeline": "time line",
    "heat_map": "heat map",
    "level": "WHAT IT DOES",
}

pytestmark = pytest.mark.skipif(
    SSHD is None or shutil.which("ssh") is None,
    reason="no ssh or sshd: apt-get install openssh-client openssh-server",
)


@pytest.fixture
def process() -> Iterator[Target]:
    with Target([demo_program(), "--deadlock"], preload_environment(None)) as target:
        yield target


@pytest.fixture
def tool(server: SshServer, process: Target, tmp_path: Path) -> Iterator[PtyTool]:
    """`locktop -p PID` at the other end of the connection."""
    pid = tmp_path / "pid"
    remote = (
        f"cd {tmp_path}; echo $$ > {pid}; "
        f"exec env LOCKTOP_CACHE=none {COMMAND} -p {process.pid} 2> errors"
    )
    with PtyTool(server.command(remote)) as opened:
        opened.shows("q quit")
        yield opened


def test_each_view_opens_and_the_screen_quits(tool: PtyTool, tmp_path: Path) -> None:
    for action, words in VIEWS.items():
        tool.press(bytes_of(next(one for one in keys_of(action))))
        tool.shows(words)
        assert leaves_all(tool), action
    tool.press("q")
    assert tool.wait() == 0
    assert tool.modes == tool.modes_before
    assert (tmp_path / "errors").read_text() == ""


def keys_of(action: str) -> tuple[str, ...]:
    return shipped().keys[action]


def test_after_each_key_of_the_help_the_screen_is_in_use(tool: PtyTool, tmp_path: Path) -> None:
    mark = tool.received
    for key in own_keys():
        tool.press(key)
        assert leaves_all(tool), f"{key!r}\n{tool.text}"
    assert b"fault: " not in tool.since(mark)
    tool.press("q")
    assert tool.wait() == 0
    assert (tmp_path / "errors").read_text() == ""


def test_a_new_size_of_the_terminal_reaches_the_screen(tool: PtyTool) -> None:
    for width, height in ((80, 24), (40, 10), (150, 45)):
        tool.resize(width, height)

        def fills(text: str, width: int = width, height: int = height) -> bool:
            lines = text.split("\n")
            # The lines between the panels have the whole width.
            return "? help" in lines[height - 1] and max(map(len, lines)) >= width - 1

        tool.until(fills, f"a screen of {width}x{height}")


def test_a_lost_connection_ends_the_tool_and_leaves_nothing(
    tool: PtyTool, process: Target, tmp_path: Path
) -> None:
    pid = int((tmp_path / "pid").read_text())
    session = os.getsid(pid)
    assert pid in members(session)
    tool.process.kill()
    until(lambda: members(session) == [], "the end of the session at the other end")
    assert process.process.poll() is None


def members(session: int) -> list[int]:
    """The processes of a session, without zombies that nobody has waited for."""
    found = []
    for directory in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            state, _, _, its_session = (
                (directory / "stat").read_text().rpartition(")")[2].split()[:4]
            )
            if int(its_session) == session and state not in "ZX":
                found.append(int(directory.name))
    return found
