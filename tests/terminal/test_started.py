"""`locktop run` leaves no program behind when a signal ends its screen."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.tool import COMMAND, PATIENCE_S


class Screen:
    """`locktop run` on a terminal, and the program that it started."""

    def __init__(self, process: subprocess.Popen[bytes], program: Path, master: int) -> None:
        self.process = process
        self.program = program
        self._painted = bytearray()
        self._changed = threading.Condition()
        threading.Thread(target=self._read, args=(master,), daemon=True).start()

    def _read(self, master: int) -> None:
        while True:
            try:
                data = os.read(master, 65536)
            except OSError:
                return
            with self._changed:
                self._painted += data
                self._changed.notify_all()

    def wait_painted(self, text: bytes) -> None:
        """Wait until ``text`` was painted."""
        with self._changed:
            assert self._changed.wait_for(lambda: text in self._painted, PATIENCE_S)


@pytest.fixture
def screen(tmp_path: Path) -> Iterator[Screen]:
    with _started(tmp_path) as screen:
        yield screen


@contextmanager
def _started(directory: Path) -> Iterator[Screen]:
    pid_file = directory / "pid"
    os.mkfifo(pid_file)
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [COMMAND, "run", "--", "sh", "-c", f"echo $$ > {pid_file}; exec sleep 1000"],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    try:
        yield Screen(process, Path("/proc", pid_file.read_text().strip()), master)
    finally:
        process.kill()
        process.wait()
        os.close(master)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_signal_leaves_no_started_program_behind(number: signal.Signals, screen: Screen) -> None:
    screen.process.send_signal(number)
    # 0: on a busy machine the screen may have opened by then, and closes.
    assert screen.process.wait(PATIENCE_S) in (128 + number, 0)
    assert not screen.program.exists()


def test_repeated_signals_leave_no_started_program_behind(screen: Screen) -> None:
    """A terminal that is gone causes several signals: from the kernel and from the shell."""
    screen.wait_painted(b"Locks")
    end = time.monotonic() + PATIENCE_S
    while screen.process.poll() is None and time.monotonic() < end:
        screen.process.send_signal(signal.SIGHUP)
        time.sleep(0.0002)
    # Not 0 if a signal comes while the screen closes.
    assert screen.process.returncode in (0, 128 + signal.SIGHUP, -signal.SIGHUP)
    assert not screen.program.exists()
