"""The screen over a real SSH connection: sshd and ssh of OpenSSH, on this machine."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.eventually import until
from support.keys import bytes_of, leaves_all, own_keys
from support.pty_tool import PtyTool
from support.targets import Target
from support.tool import COMMAND

from locktop.collector.sources.launch import preload_environment
from locktop.tui.commands.demo import demo_program
from locktop.tui.keymap import shipped

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
#: Where sshd of root changes its root to; the package of sshd makes the directory at boot.
EMPTY_ROOT = Path("/run/sshd")
CONFIG = """\
ListenAddress 127.0.0.1
Port {port}
HostKey {directory}/host
AuthorizedKeysFile {directory}/user.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
SetEnv HOME={directory}
"""
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


class Server:
    """An sshd of this user that only this test can log in to.

    The home of a session is a directory of the test: its shell reads no file of the user.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        for name in ("host", "user"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / name)]
            subprocess.run(command, check=True)
        if os.getuid() == 0:
            EMPTY_ROOT.mkdir(mode=0o755, exist_ok=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        config = directory / "config"
        config.write_text(CONFIG.format(port=self._port, directory=directory))
        self._process = subprocess.Popen(
            [str(SSHD), "-D", "-e", "-f", str(config)], stderr=subprocess.PIPE, text=True
        )
        assert self._process.stderr is not None
        said = self._process.stderr.readline()
        assert "listening" in said, said + self._process.stderr.read()

    def close(self) -> None:
        """End the server."""
        self._process.terminate()
        self._process.communicate()

    def command(self, remote: str) -> list[str]:
        """The command that runs the shell line ``remote`` over SSH, on a terminal."""
        options = {
            "StrictHostKeyChecking": "no", "UserKnownHostsFile": "/dev/null", "LogLevel": "ERROR",
            "IdentitiesOnly": "yes",
        }  # fmt: skip
        return [
            "ssh", "-tt", "-F", "none", "-p", str(self._port), "-i", f"{self._directory}/user",
            *(word for name, value in options.items() for word in ("-o", f"{name}={value}")),
            f"{getpass.getuser()}@127.0.0.1", remote,
        ]  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    opened = Server(tmp_path_factory.mktemp("ssh"))
    yield opened
    opened.close()


@pytest.fixture
def process() -> Iterator[Target]:
    with Target([demo_program(), "--deadlock"], preload_environment(None)) as target:
        yield target


@pytest.fixture
def tool(server: Server, process: Target, tmp_path: Path) -> Iterator[PtyTool]:
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
