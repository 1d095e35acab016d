"""Signals to the screen at any time: it ends or goes on, and the terminal is as before."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import random
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.eventually import until
from support.pty_output import PtyOutput
from support.targets import StartTarget
from support.terminal import LONG_ENOUGH_S, Terminal
from support.tool import COMMAND

_OTHER_SCREEN, _FIRST_SCREEN = b"\x1b[?1049h", b"\x1b[?1049l"
#: Signals that would end a process without a handler.
_ENDS = (
    signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGALRM, signal.SIGUSR1,
    signal.SIGVTALRM, signal.SIGRTMIN,
)  # fmt: skip


class _Screen:
    """A command on a terminal that does not control it."""

    def __init__(self, command: Sequence[str]) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.modes_before = termios.tcgetattr(slave)
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color"},
        )
        os.close(slave)
        self.output = PtyOutput(self.master)

    def wait_for(self, text: bytes) -> None:
        """Wait until the command has written ``text``."""
        found = self.output.wait_for(lambda data: text in data, LONG_ENOUGH_S)
        assert found, self.output.data

    def check_end(self, *statuses: int) -> None:
        """Wait for the end; the terminal is as before the command."""
        assert self.process.wait(LONG_ENOUGH_S) in statuses, self.output.data
        assert self.modes == self.modes_before
        data = self.output.data
        if _OTHER_SCREEN in data:
            is_back = self.output.wait_for(
                lambda data: data.rfind(_FIRST_SCREEN) > data.rfind(_OTHER_SCREEN), LONG_ENOUGH_S
            )
            assert is_back, data
            assert data.count(b"\x1b[>") <= data.count(b"\x1b[<u"), "the keyboard is as before"

    @property
    def modes(self) -> list[Any]:
        """The attributes of the terminal."""
        return termios.tcgetattr(self.master)

    def close(self) -> None:
        """End the command in any state."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        self.output.stop(LONG_ENOUGH_S)
        os.close(self.master)


Open = Callable[..., _Screen]


@pytest.fixture
def open_screen() -> Iterator[Open]:
    """Runs a command of locktop on a terminal."""
    with contextlib.ExitStack() as stack:

        def run(*arguments: str | int) -> _Screen:
            screen = _Screen([COMMAND, *map(str, arguments)])
            stack.callback(screen.close)
            return screen

        yield run


# ---- the screen goes on ----


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGSTOP)
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)


@pytest.mark.parametrize("stops", [0, 1, 3])
def test_q_ends_the_screen_after_sigcont(stops: int, terminal: Terminal) -> None:
    """Textual began application mode a second time; its first threads never ended."""
    for _ in range(max(1, stops)):
        if stops:
            _stop(terminal.process)
        mark = terminal.received
        terminal.process.send_signal(signal.SIGCONT)
        # The screen sets the terminal anew, and paints all.
        terminal.wait_text(_OTHER_SCREEN.decode(), mark)
        for text in ("WAITERS", "shard0.mutex", "Details"):
            terminal.wait_text(text, mark)
    terminal.press("q")
    assert terminal.process.wait(LONG_ENOUGH_S) == 0
    assert terminal.modes == terminal.modes_before


def test_modes_that_changed_during_a_stop_are_set_again(terminal: Terminal) -> None:
    """A shell resets the terminal when a job stops."""
    modes = terminal.modes
    assert modes != terminal.modes_before
    _stop(terminal.process)
    terminal.set_modes(terminal.modes_before)
    mark = terminal.received
    terminal.process.send_signal(signal.SIGCONT)
    terminal.wait_text(_OTHER_SCREEN.decode(), mark)
    assert terminal.modes == modes
    terminal.press("q")
    assert terminal.process.wait(LONG_ENOUGH_S) == 0
    assert terminal.modes == terminal.modes_before


def test_a_mixture_of_stops_leaves_the_keys_in_use(terminal: Terminal) -> None:
    """Ctrl+Z resets the terminal; SIGSTOP does not; SIGCONT may come without either."""
    chance = random.Random(23)
    for _ in range(6):
        kind = chance.choice(("key", "stop", "none"))
        if kind == "key":
            terminal.press("\x1a")
            _, status = os.waitpid(terminal.process.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status)
        elif kind == "stop":
            _stop(terminal.process)
        mark = terminal.received
        terminal.process.send_signal(signal.SIGCONT)
        terminal.wait_text(_OTHER_SCREEN.decode(), mark)
        terminal.wait_text("shard0.mutex", mark)
    terminal.press("q")
    assert terminal.process.wait(LONG_ENOUGH_S) == 0
    assert terminal.modes == terminal.modes_before


# ---- the screen ends ----


@pytest.mark.parametrize("number", _ENDS, ids=lambda number: signal.Signals(number).name)
def test_a_signal_ends_the_screen(number: int, terminal: Terminal) -> None:
    mark = terminal.received
    terminal.process.send_signal(number)
    assert terminal.process.wait(LONG_ENOUGH_S) == 128 + number
    terminal.wait_text(_FIRST_SCREEN.decode(), mark)
    assert terminal.modes == terminal.modes_before
    assert b"Traceback" not in terminal.since(mark)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
@pytest.mark.parametrize("moment", [_OTHER_SCREEN, b"\x1b[?2004h"], ids=["screen", "paste"])
def test_a_signal_at_the_start_of_the_screen_ends_it(
    moment: bytes, number: int, start_target: StartTarget, open_screen: Open
) -> None:
    """The terminal is set before the app knows of its event loop."""
    target = start_target("mutex_orders", "inversion")
    target.expect("ok")
    screen = open_screen("-p", target.pid)
    screen.wait_for(moment)
    screen.process.send_signal(number)
    screen.check_end(128 + number)


#: `locktop` that gets SIGTERM in the middle of the call that sets the terminal.
_IN_THE_MIDDLE = """
import os, signal, sys
from locktop.tui import cli
from locktop.tui.terminal import driver
begin = driver.LinuxDriver.start_application_mode
def begin_and_signal(self):
    begin(self)
    os.kill(os.getpid(), signal.SIGTERM)
driver.LinuxDriver.start_application_mode = begin_and_signal
sys.exit(cli.main(sys.argv[1:]))
"""


def test_a_signal_before_the_first_frame_ends_the_screen(start_target: StartTarget) -> None:
    target = start_target("mutex_orders", "inversion")
    target.expect("ok")
    screen = _Screen([sys.executable, "-c", _IN_THE_MIDDLE, "-p", str(target.pid)])
    try:
        screen.check_end(128 + signal.SIGTERM)
    finally:
        screen.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_at_the_start_of_listen_ends_it(number: int, open_screen: Open) -> None:
    """The command listens before its screen begins."""
    screen = open_screen("listen", "udp://127.0.0.1:0")
    screen.wait_for(b"listening at ")
    screen.process.send_signal(number)
    screen.check_end(128 + number)


# ---- the terminal hangs up ----


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("record", "-o", "FILE"), b"recording "),
        (("watch",), b"watching "),
        (("stream", "--to", "udp://127.0.0.1:9"), b"streaming process "),
        (("top", "--batch", "-d", "1000"), b"LOCK"),
    ],
    ids=["record", "watch", "stream", "top"],
)
def test_a_lost_terminal_ends_a_command_without_a_screen(
    command: tuple[str, ...], said: bytes, tmp_path: Path, start_target: StartTarget
) -> None:
    """The terminal does not control the command, so the kernel sends no signal."""
    target = start_target("mutex_orders", "inversion")
    target.expect("ok")
    name, *options = (word.replace("FILE", str(tmp_path / "r")) for word in command)
    screen = _Screen([COMMAND, name, "-p", str(target.pid), *options])
    try:
        screen.wait_for(said)
        screen.output.stop(LONG_ENOUGH_S)
        os.close(screen.master)
        screen.master = os.open(os.devnull, os.O_RDWR)
        until(lambda: screen.process.poll() is not None, "the command has ended")
    finally:
        screen.close()
    assert target.process.poll() is None


def test_a_lost_terminal_leaves_a_command_that_ignores_hang_ups(
    tmp_path: Path, start_target: StartTarget
) -> None:
    """The near miss: `nohup` with its output on the terminal."""
    target = start_target("mutex_orders", "inversion")
    target.expect("ok")
    file = tmp_path / "r"
    ignoring = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh"]
    screen = _Screen([*ignoring, COMMAND, "record", "-p", str(target.pid), "-o", str(file)])
    try:
        screen.wait_for(b"recording ")
        screen.output.stop(LONG_ENOUGH_S)
        os.close(screen.master)
        screen.master = os.open(os.devnull, os.O_RDWR)
        size = file.stat().st_size
        until(lambda: file.stat().st_size > size, "the recording goes on")
        assert screen.process.poll() is None
        screen.process.send_signal(signal.SIGTERM)
        assert screen.process.wait(LONG_ENOUGH_S) == 0
    finally:
        screen.close()
