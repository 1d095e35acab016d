"""`locktop listen` on a terminal of 80 columns and 24 rows, which is as before at the end."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable

import pytest
from support.eventually import PATIENCE_S
from support.streams import streaming
from support.targets import StartTarget
from support.tool import COMMAND


class _Listening:
    """The command on a pseudo-terminal."""

    def __init__(self, url: str) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.modes_before = termios.tcgetattr(slave)
        self.process = subprocess.Popen(
            [COMMAND, "listen", url],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color"},
        )
        os.close(slave)
        self.output = b""

    def until(self, text: str) -> None:
        """Read until a text has arrived."""
        until, mark = time.monotonic() + PATIENCE_S, len(self.output)
        while text.encode() not in self.output[mark:]:
            assert time.monotonic() < until, self.output[mark:]
            self._read()

    def end(self) -> int:
        """Read until the command has ended; return its status."""
        while self.process.poll() is None:
            self._read()
        self._read()
        return self.process.returncode

    def _read(self) -> None:
        if select.select([self.master], [], [], 0.1)[0]:
            try:
                self.output += os.read(self.master, 1 << 16)
            except OSError:  # the command has closed the terminal
                time.sleep(0.01)


def _press_q(listening: _Listening) -> None:
    os.write(listening.master, b"q")


def _terminate(listening: _Listening) -> None:
    listening.process.send_signal(signal.SIGTERM)


@pytest.mark.parametrize(("finish", "status"), [(_press_q, 0), (_terminate, 128 + signal.SIGTERM)])
def test_the_terminal_is_as_before_after_each_end(
    finish: Callable[[_Listening], None], status: int, start_target: StartTarget
) -> None:
    target = start_target("ring_of_three")
    target.expect("ready")
    target.go_on()
    target.truth()
    listening = _Listening("udp://127.0.0.1:0")
    try:
        listening.until("WAITING")
        url = listening.output.partition(b"listening at ")[2].split()[0].decode()
        with streaming(target.pid, url):
            listening.until("DEADLOCK")
            finish(listening)
            assert listening.end() == status
    finally:
        listening.process.kill()
        listening.process.wait()
    assert termios.tcgetattr(listening.master) == listening.modes_before
    assert listening.output.rindex(b"\x1b[?1049l") > listening.output.rindex(b"\x1b[?1049h")
    os.close(listening.master)
