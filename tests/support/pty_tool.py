"""A command on a pseudo-terminal, and the text that a terminal would show."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from support.emulator import Appearance, Emulator
from support.pty_output import PtyOutput

#: Far longer than any change of the screen takes.
PATIENCE_S = 90.0
#: Between two checks whether the process has ended.
_PAUSE_S = 0.2
#: The environment of a usual terminal, without what the terminal of the test would add.
USUAL = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
_OF_TERMINALS = (
    "NO_COLOR", "SSH_CONNECTION", "TMUX", "STY", "TERM_PROGRAM", "LC_ALL", "LC_CTYPE", "LANG",
    "LINES", "COLUMNS",
)  # fmt: skip


def environment_of(changes: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a usual terminal with these ``changes``."""
    kept = {name: value for name, value in os.environ.items() if name not in _OF_TERMINALS}
    return kept | USUAL | dict(changes)


class PtyTool:
    """A process on a terminal that controls it. A thread reads the output at once."""

    def __init__(
        self,
        command: Sequence[str],
        size: tuple[int, int] = (120, 40),
        environment: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
    ) -> None:
        """``environment`` adds to that of a usual terminal."""
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self.modes_before = termios.tcgetattr(slave)
        self.process = subprocess.Popen(
            # The outermost process makes the terminal its own, as a login shell does.
            ["setsid", "--ctty", "--wait", *command],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment_of(environment or {}),
            cwd=cwd,
        )
        os.close(slave)
        self._emulator = Emulator(*size)
        self._lock = threading.Lock()  # for the emulator
        self._output = PtyOutput(self._master, self._show)

    def __enter__(self) -> PtyTool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _show(self, data: bytes) -> None:
        with self._lock:
            self._emulator.feed(data)
            answers = self._emulator.take_answers()
        if answers:
            self.press(answers)

    @property
    def text(self) -> str:
        """The lines of the screen."""
        with self._lock:
            return self._emulator.text

    @property
    def appearances(self) -> list[list[Appearance]]:
        """All cells of the screen, row by row."""
        with self._lock:
            return self._emulator.appearances()

    @property
    def received(self) -> int:
        """The number of bytes that have arrived so far."""
        return len(self._output.data)

    def since(self, mark: int) -> bytes:
        """The output after the first ``mark`` bytes."""
        return self._output.data[mark:]

    def comes(self, seen: Callable[[str], bool], within_s: float = PATIENCE_S) -> bool:
        """Wait until ``seen`` is true of the text of the screen; return whether it came true."""
        end = time.monotonic() + within_s
        while not self._output.wait_for(lambda _: seen(self.text), _PAUSE_S):
            if time.monotonic() >= end or self.process.poll() is not None:
                return False
        return True

    def until(self, seen: Callable[[str], bool], what: str) -> str:
        """Return the text of the screen as soon as ``seen`` is true of it."""
        if not self.comes(seen):
            status = self.process.poll()
            raise AssertionError(f"never seen: {what}; status {status}\n{self.text}")
        return self.text

    def shows(self, words: str) -> str:
        """Wait until the screen shows ``words``; return its text."""
        return self.until(lambda text: words in text, repr(words))

    def press(self, keys: str | bytes) -> None:
        """Type keys."""
        os.write(self._master, keys.encode() if isinstance(keys, str) else keys)

    def resize(self, width: int, height: int) -> None:
        """Set the size; the kernel tells the process of the terminal."""
        with self._lock:
            self._emulator.resize(width, height)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    @property
    def modes(self) -> list[Any]:
        """The attributes of the terminal."""
        return termios.tcgetattr(self._master)

    def wait(self) -> int:
        """Wait for the end of the command; return its exit status."""
        return self.process.wait(PATIENCE_S)

    def hang_up(self) -> None:
        """Close the terminal, as a lost connection does."""
        self._output.stop(PATIENCE_S)
        os.close(self._master)
        self._master = os.open(os.devnull, os.O_RDWR)

    def close(self) -> None:
        """End the command in any state."""
        self._output.stop(PATIENCE_S)
        os.close(self._master)  # the kernel sends SIGHUP
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
