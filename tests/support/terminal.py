"""A pseudo-terminal with a child of tests/terminal/ that runs the real app."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

from support.emulator import Emulator, Kind

HERE = Path(__file__).parent.parent / "terminal"
#: A guard against output that never comes; a machine with a load of twenty takes long.
LONG_ENOUGH_S = 300.0
#: Asks for the position of the cursor.
_QUESTION = b"\x1b[6n"


class Terminal:
    """A child that runs the app on a pty. A thread reads the output at once, unless held back."""

    def __init__(
        self,
        child: str,
        size: tuple[int, int] = (120, 40),
        patience_s: float = LONG_ENOUGH_S,
        variables: Mapping[str, str] = MappingProxyType({}),
        kind: Kind = Kind.XTERM,
    ) -> None:
        """Args:
        child: the program, in tests/terminal/.
        size: the columns and rows.
        patience_s: how long the child waits at its end until the terminal reads.
        variables: more variables of the environment of the child.
        kind: the abilities of the terminal.
        """
        self._size = size
        self.kind = kind
        environ = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TMUX", "STY")}
        environ |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", "SSH_CONNECTION": "a 1 b 2"}
        environ |= {"LC_ALL": "C.UTF-8"}
        environ |= {"PYTHONPATH": str(HERE.parent), "TEST_PARENT": str(os.getpid())}
        environ |= variables
        self._master, slave = pty.openpty()
        self.modes_before = termios.tcgetattr(slave)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        command_read, command_write = os.pipe()
        answer_read, answer_write = os.pipe()
        arguments = (command_read, answer_write, patience_s)
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / child), *map(str, arguments)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            pass_fds=(command_read, answer_write),
            env=environ,
        )
        for descriptor in (slave, command_read, answer_write):
            os.close(descriptor)
        self._commands: IO[str] = os.fdopen(command_write, "w", buffering=1)
        self._answers: IO[str] = os.fdopen(answer_read, "r")
        self._output = bytearray()
        self._changed = threading.Condition()
        self._leaving = threading.Event()
        self._reading = threading.Event()
        self._reading.set()
        self._allowed: int | None = None  # bytes that may still be read; None: any number
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while not self._leaving.is_set():
            self._reading.wait()
            if not select.select([self._master], [], [], 0.05)[0]:
                continue
            with self._changed:
                allowed = self._allowed
            if allowed == 0:
                with self._changed:
                    self._changed.wait(0.05)
                continue
            try:
                data = os.read(self._master, min(allowed or 65536, 65536))
            except OSError:  # the child has closed the terminal
                data = b""
            with self._changed:
                begin = max(0, len(self._output) - len(_QUESTION))
                self._output += data
                if self._allowed is not None:
                    self._allowed -= len(data)
                self._changed.notify_all()
            if not data:
                return
            if (begin_of_question := self._output.find(_QUESTION, begin)) >= 0:
                emulator = Emulator(*self._size, self.kind)
                emulator.feed(bytes(self._output[: begin_of_question + len(_QUESTION)]))
                self.press("\x1b" + emulator.take_answers().rpartition("\x1b")[2])

    def hold(self) -> None:
        """Read no more. A read that has begun still ends."""
        self._reading.clear()

    def go_on(self) -> None:
        """Read again, as fast as possible."""
        with self._changed:
            self._allowed = None
        self._reading.set()

    def limit(self) -> None:
        """Read nothing from now on, but what ``carry()`` allows."""
        with self._changed:
            self._allowed = 0

    def carry(self, number: int) -> None:
        """Read so many bytes more, which the child has written already."""
        with self._changed:
            wanted = len(self._output) + number
            self._allowed = number
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: len(self._output) >= wanted, LONG_ENOUGH_S)

    @property
    def received(self) -> int:
        """The number of bytes that have arrived so far."""
        with self._changed:
            return len(self._output)

    def since(self, mark: int) -> bytes:
        """The output after the first ``mark`` bytes."""
        with self._changed:
            return bytes(self._output[mark:])

    def wait_bytes(self, number: int) -> None:
        """Wait until ``number`` bytes have arrived in all."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self._output) >= number, LONG_ENOUGH_S)

    def wait_text(self, text: str, mark: int) -> float:
        """Wait until ``text`` has come after ``mark``; return the seconds of the wait.

        Text of the screen may arrive in pieces, since only changed cells are sent.
        """
        began = time.monotonic()
        emulator = Emulator(*self._size, self.kind)
        emulator.feed(self.since(0)[:mark])
        was_visible, fed = text in emulator.text, mark

        def has_come() -> bool:
            nonlocal fed
            emulator.feed(bytes(self._output[fed:]))
            fed = len(self._output)
            visible = text in emulator.text
            return (visible and not was_visible) or text.encode() in self._output[mark:]

        with self._changed:
            came = self._changed.wait_for(has_come, LONG_ENOUGH_S)
            assert came, f"{text!r} was not painted\n{emulator.text}"
        return time.monotonic() - began

    def tell(self, command: str) -> dict[str, Any]:
        """Send a command; return the answer that the child gives after its last output."""
        self._commands.write(command + "\n")
        line = self._answers.readline()
        assert line.startswith("{"), line + self._answers.read()
        answer: dict[str, Any] = json.loads(line)
        return answer

    def frame(self, command: str) -> int:
        """Send a command; return the number of bytes of output that the command caused."""
        before = self.received
        self.wait_bytes(int(self.tell(command)["queued"]))
        return self.received - before

    def press(self, keys: str | bytes) -> None:
        """Type keys, or bytes that are no keys."""
        os.write(self._master, keys.encode() if isinstance(keys, str) else keys)

    def resize(self, width: int, height: int) -> None:
        """Set the size, and tell the child as the kernel tells the owner of a terminal."""
        self._size = (width, height)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        self.process.send_signal(signal.SIGWINCH)

    @property
    def modes(self) -> list[Any]:
        """The attributes of the terminal."""
        return termios.tcgetattr(self._master)

    def set_modes(self, modes: list[Any]) -> None:
        """Set the attributes, as another program on the terminal does."""
        termios.tcsetattr(self._master, termios.TCSANOW, modes)

    def fill(self) -> None:
        """Read no more, and have the child write until the terminal takes no more."""
        interval_s = self.tell("settle")["interval_s"]
        self.hold()
        ticks = iter(range(1, 1000))
        while self.tell(f"tick {next(ticks)}")["interval_s"] <= 4 * interval_s:
            pass

    def hang_up(self) -> None:
        """Close the terminal, as a lost connection does."""
        # A read that has begun would keep the terminal open.
        self._leaving.set()
        self.go_on()
        self._reader.join(LONG_ENOUGH_S)
        os.close(self._master)
        self._master = os.open(os.devnull, os.O_RDWR)

    def close(self) -> None:
        """End the child in any state."""
        self.go_on()
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join(LONG_ENOUGH_S)
        self._commands.close()
        self._answers.close()
        os.close(self._master)


@contextlib.contextmanager
def opened_terminal(
    patience_s: float = LONG_ENOUGH_S,
    kind: Kind = Kind.XTERM,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Terminal]:
    """A terminal that shows the monitor; for the arguments see Terminal."""
    terminal = Terminal("child.py", patience_s=patience_s, kind=kind, variables=variables)
    try:
        terminal.wait_text("shard0.mutex", 0)
        terminal.frame("settle")
        yield terminal
    finally:
        terminal.close()
