"""The screen on terminals of all kinds, and what it leaves of them."""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.keys import leaves_all
from support.pty_tool import PtyTool
from support.targets import Target
from support.tool import COMMAND

from locktop.collector.sources.launch import preload_environment
from locktop.tui.commands.demo import demo_program

#: Asks whether the terminal has synchronized output.
QUESTION = b"\x1b[?2026$p"
COLOUR = re.compile(rb"\x1b\[(?:[0-9;]*;)?(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])[0-9;]*m")


@pytest.fixture
def process() -> Iterator[Target]:
    with Target([demo_program(), "--deadlock"], preload_environment(None)) as target:
        yield target


@pytest.fixture
def attach(process: Target, tmp_path: Path) -> Iterator[Callable[..., PtyTool]]:
    """Opens the screen of the process: ``attach(size, **environment)``."""
    opened: list[PtyTool] = []

    def start(size: tuple[int, int] = (100, 30), **environment: str) -> PtyTool:
        own = {"XDG_CONFIG_HOME": str(tmp_path), **environment}
        tool = PtyTool([COMMAND, "-p", str(process.pid)], size, own)
        opened.append(tool)
        tool.shows("? help")
        return tool

    yield start
    for tool in opened:
        tool.close()


def quits(tool: PtyTool) -> None:
    """Check that the screen answers, quits, and leaves the terminal as it was."""
    assert leaves_all(tool), tool.text
    mark = tool.received
    tool.press("q")
    assert tool.wait() == 0
    assert tool.modes == tool.modes_before
    last = tool.since(mark)
    for words in (b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?7h", b"\x1b[?2004l"):
        assert words in last, words


@pytest.mark.parametrize("locale", [{"LANG": "C"}, {"LANG": "", "LC_ALL": "POSIX"}])
def test_a_locale_without_utf8_shows_ascii_alone(
    locale: dict[str, str], attach: Callable[..., PtyTool]
) -> None:
    tool = attach(**locale)
    tool.shows("DEADLOCK for")
    tool.shows("> Locks")
    quits(tool)
    assert tool.since(0).isascii()


@pytest.mark.parametrize("term", ["vt100", "linux", "xterm", "screen", "tmux-256color"])
def test_the_screen_is_in_use_on_a_terminal_of_this_name(
    term: str, attach: Callable[..., PtyTool]
) -> None:
    quits(attach(TERM=term, COLORTERM=""))


def test_a_terminal_without_colours_gets_none(attach: Callable[..., PtyTool]) -> None:
    tool = attach(NO_COLOR="1")
    quits(tool)
    assert COLOUR.search(tool.since(0)) is None


def test_a_terminal_that_can_do_nothing_is_refused(process: Target) -> None:
    with PtyTool([COMMAND, "-p", str(process.pid)], environment={"TERM": "dumb"}) as tool:
        assert tool.wait() == 2
        assert b"the screen needs a terminal; TERM=dumb is none" in tool.since(0)
        assert tool.modes == tool.modes_before


def test_a_screen_of_40_columns_and_10_rows_shows_the_deadlock(
    attach: Callable[..., PtyTool],
) -> None:
    tool = attach((40, 10))
    text = tool.shows("DEADLOCK for")
    assert "Locks" in text
    tool.press("d")
    tool.shows("threads wait for each")
    tool.resize(100, 30)
    tool.until(lambda text: "? help" in text.split("\n")[29], "the new size")
    quits(tool)


@pytest.mark.parametrize(
    ("environ", "asks"),
    [
        ({}, True),
        ({"TMUX": "/tmp/tmux-0/default,1,0"}, False),
        ({"TERM": "screen-256color"}, False),
        ({"TERM": "tmux-256color", "LOCKTOP_SYNCHRONIZED": "true"}, True),
        ({"LOCKTOP_SYNCHRONIZED": "false"}, False),
    ],
)
def test_synchronized_output_is_off_in_tmux_unless_configured(
    environ: dict[str, str], asks: bool, attach: Callable[..., PtyTool]
) -> None:
    tool = attach(**environ)
    quits(tool)
    assert (QUESTION in tool.since(0)) == asks


def test_a_stopped_screen_gives_the_terminal_to_the_shell_and_takes_it_back(
    process: Target, tmp_path: Path
) -> None:
    """A real shell with jobs: Ctrl+Z, a command of the shell, fg."""
    shell = ["bash", "--norc", "--noprofile", "-i"]
    with PtyTool(shell, environment={"PS1": "shell> ", "XDG_CONFIG_HOME": str(tmp_path)}) as tool:
        tool.shows("shell>")
        tool.press(f"{COMMAND} -p {process.pid}\r")
        tool.shows("? help")
        mark = tool.received
        tool.press("\x1a")
        tool.shows("Stopped")
        for words in (b"\x1b[?1049l", b"\x1b[?25h"):
            assert words in tool.since(mark)
        tool.press("echo $((40 + 2)) of the shell\r")
        tool.shows("42 of the shell")
        mark = tool.received
        tool.press("fg\r")
        tool.until(lambda _: b"\x1b[?1049h" in tool.since(mark), "the other screen again")
        tool.shows("? help")
        assert leaves_all(tool)
        tool.press("q")
        tool.until(lambda _: b"\x1b[?1049l" in tool.since(mark), "the screen of the shell")
        tool.press("echo $((50 + 5)) of the shell\r")
        tool.shows("55 of the shell")


def test_the_end_of_the_shell_ends_the_screen(process: Target, tmp_path: Path) -> None:
    with PtyTool(["bash", "--norc", "-i"], environment={"PS1": "shell> "}) as tool:
        tool.shows("shell>")
        tool.press(f"{COMMAND} -p {process.pid}\r")
        tool.shows("? help")
        (child,) = (
            Path(f"/proc/{tool.process.pid}/task/{tool.process.pid}/children").read_text().split()
        )
        descriptor = os.pidfd_open(int(child))
        tool.process.send_signal(signal.SIGKILL)
        tool.hang_up()
        signalled = select.select([descriptor], [], [], 60)[0]
        os.close(descriptor)
        assert signalled, "the screen outlived its terminal"


@pytest.mark.skipif(shutil.which("screen") is None, reason="apt-get install screen")
@pytest.mark.parametrize("utf8", [True, False])
def test_the_screen_is_in_use_in_gnu_screen(utf8: bool, process: Target, tmp_path: Path) -> None:
    environ = {
        "LANG": "C.UTF-8" if utf8 else "C",
        "XDG_CONFIG_HOME": str(tmp_path),
        "SCREENDIR": str(tmp_path),
        "LOCKTOP_CACHE": "none",
    }
    tmp_path.chmod(0o700)
    command = ["screen", *(["-U"] if utf8 else []), "-c", "/dev/null", COMMAND]
    with PtyTool([*command, "-p", str(process.pid)], environment=environ) as tool:
        tool.shows("? help")
        tool.shows("▶ Locks" if utf8 else "> Locks")
        assert "\ufffd" not in tool.text
        assert leaves_all(tool)
        tool.press("q")
        assert tool.wait() == 0
