"""Copies compared byte for byte: on a plain terminal, in tmux with its settings, and in screen."""

from __future__ import annotations

import base64
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import requirements
from support.pty_output import PtyOutput
from support.terminal import HERE, LONG_ENOUGH_S, Terminal

KEYS = (("y", "the row"), ("Y", "the details"), ("\x19", "the report"))
_OSC_52 = re.compile(rb"\x1b\]52;([^;]*);([A-Za-z0-9+/=]*)(?:\x07|\x1b\\)")


def copies(output: bytes | bytearray) -> list[bytes]:
    """The texts that a terminal would put into its clipboard."""
    return [base64.b64decode(found[2]) for found in _OSC_52.finditer(output)]


@pytest.fixture
def runtime(tmp_path: Path) -> Path:
    directory = tmp_path / "runtime"
    directory.mkdir(mode=0o700)
    return directory


def copied_file(runtime: Path) -> Path:
    return runtime / "locktop" / "copied.txt"


def test_row_and_details_reach_the_terminal_and_the_file(runtime: Path) -> None:
    terminal = Terminal(
        "hands_child.py", variables={"XDG_RUNTIME_DIR": str(runtime), "TMUX": "", "STY": ""}
    )
    try:
        terminal.wait_text("g_table_lock", 0)
        for (key, what), words in zip(
            KEYS, ("LOCK g_cache_lock  KIND", "cache.c:88", "LOCKS"), strict=True
        ):
            mark = terminal.received
            terminal.press(key)
            terminal.wait_text(f"Copied {what}: sent to the terminal; also in", mark)
            (text,) = copies(terminal.since(mark))
            assert copied_file(runtime).read_bytes() == text
            assert copied_file(runtime).stat().st_mode & 0o777 == 0o600
            assert words in text.decode()
    finally:
        terminal.close()


class Multiplexer:
    """tmux or screen on a pty, with the app in it. A thread reads what reaches the outer pty."""

    def __init__(self, command: list[str], environ: dict[str, str]) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env=environ,
        )
        os.close(slave)
        self._output = PtyOutput(self._master)

    @property
    def output(self) -> bytes:
        return self._output.data

    def wait_text(self, text: str, mark: int = 0) -> None:
        wanted = text.encode()
        painted = self._output.wait_for(lambda output: wanted in output[mark:], LONG_ENOUGH_S)
        assert painted, f"{text!r} was not painted: {self.output[mark:][-2000:]!r}"

    def copies_after(self, mark: int) -> list[bytes]:
        """The copies after ``mark``; wait for the first one."""
        self._output.wait_for(lambda output: copies(output[mark:]), LONG_ENOUGH_S)
        return copies(self.output[mark:])

    def clear_message(self) -> None:
        """Press a key that clears the message, and wait for the line of keys."""
        mark = len(self.output)
        self.press("j")
        self.wait_text("help", mark)

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._output.stop(LONG_ENOUGH_S)
        os.close(self._master)


def environ(runtime: Path, tmp_path: Path) -> dict[str, str]:
    left_out = ("TMUX", "TMUX_PANE", "STY", "NO_COLOR")
    found = {name: value for name, value in os.environ.items() if name not in left_out}
    return found | {
        "TERM": "xterm-256color",
        "LC_ALL": "C.UTF-8",
        "XDG_RUNTIME_DIR": str(runtime),
        "PYTHONPATH": str(HERE.parent),
        "SCREENDIR": str(tmp_path / "screens"),
    }


def child() -> str:
    return f"{sys.executable} {HERE / 'hands_child.py'}"


@pytest.fixture(params=["on", "external", "off"])
def setting(request: pytest.FixtureRequest) -> str:
    value: str = request.param
    return value


@pytest.fixture
def tmux(tmp_path: Path, runtime: Path, setting: str) -> Iterator[tuple[Multiplexer, list[str]]]:
    requirements.command("tmux")
    config = tmp_path / "tmux.conf"
    config.write_text(
        f"set -s set-clipboard {setting}\nset -s escape-time 0\nset -g status off\n"
        "set -g default-terminal screen-256color\n"
    )
    ask = ["tmux", "-S", str(tmp_path / "tmux.sock")]
    opened = Multiplexer(
        [*ask, "-u", "-f", str(config), "new-session", child()], environ(runtime, tmp_path)
    )
    try:
        opened.wait_text("g_table_lock")
        yield opened, ask
    finally:
        subprocess.run([*ask, "kill-server"], check=False, capture_output=True)
        opened.close()


def test_tmux_takes_copies_in_one_of_its_settings_and_the_file_always(
    tmux: tuple[Multiplexer, list[str]], runtime: Path, setting: str
) -> None:
    opened, ask = tmux
    for key, what in KEYS:
        mark = len(opened.output)
        opened.press(key)
        # tmux handles the output of the app in its order: the copy comes before the message.
        opened.wait_text(f"Copied {what}: sent to the terminal; also in", mark)
        opened.wait_text("set-clipboard is on", mark)
        text = copied_file(runtime).read_bytes()
        assert text
        buffer = subprocess.run([*ask, "show-buffer"], check=False, capture_output=True)
        if setting == "on":
            assert buffer.stdout == text
            assert copies(opened.output[mark:]) == [text], "the outer terminal has it too"
        else:
            assert buffer.returncode != 0, "no buffer was made"
            assert copies(opened.output) == []
        opened.clear_message()


def test_screen_passes_a_copy_on_to_its_terminal(tmp_path: Path, runtime: Path) -> None:
    requirements.command("screen")
    (tmp_path / "screens").mkdir(mode=0o700)
    config = tmp_path / "screenrc"
    config.write_text("startup_message off\ndefutf8 on\n")
    name = f"locktop-{os.getpid()}"
    command = ["screen", "-U", "-c", str(config), "-S", name, *child().split()]
    opened = Multiplexer(command, environ(runtime, tmp_path))
    try:
        opened.wait_text("g_table_lock")
        for key, what in KEYS:
            mark = len(opened.output)
            opened.press(key)
            opened.wait_text(f"Copied {what}: sent to the terminal; also in", mark)
            text = copied_file(runtime).read_bytes()
            assert opened.copies_after(mark) == [text]
            opened.clear_message()
    finally:
        subprocess.run(
            ["screen", "-S", name, "-X", "quit"],
            check=False,
            capture_output=True,
            env=environ(runtime, tmp_path),
        )
        opened.close()
