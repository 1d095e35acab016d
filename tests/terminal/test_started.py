"""The program of `locktop run`, when its screen ends."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.eventually import until
from support.pty_output import PtyOutput
from support.tool import COMMAND, PATIENCE_S

from locktop.collector.recording.recording import Recording

END_WITH_SCREEN = "--end-with-screen"
#: A lone escape byte and the key after it may be read as one key; this form is never ambiguous.
ESCAPE = b"\x1b[27u"
#: `locktop` with a monitor that cannot draw.
FAULTY = (
    "import sys\n"
    "from locktop.tui import cli\n"
    "from locktop.tui.screens.monitor import MonitorScreen\n"
    "def draw(self): raise ZeroDivisionError('a fault')\n"
    "MonitorScreen._draw = draw\n"
    "sys.exit(cli.main())\n"
)


class Screen:
    """`locktop run` on a terminal, and the program that it started."""

    def __init__(self, process: subprocess.Popen[bytes], pid: int, master: int) -> None:
        self.process = process
        self.pid = pid
        self._master = master
        self._painted = PtyOutput(master)

    @property
    def runs(self) -> bool:
        """Whether the program runs: neither gone nor a zombie that nobody has waited for."""
        try:
            state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False
        return state not in "ZX"

    def wait_painted(self, text: bytes) -> None:
        """Wait until ``text`` was painted."""
        painted = self._painted.wait_for(lambda output: text in output, PATIENCE_S)
        assert painted, self._painted.data

    def press(self, keys: bytes) -> None:
        """Type keys."""
        os.write(self._master, keys)

    def hang_up(self) -> None:
        """Close the terminal."""
        self._painted.stop(PATIENCE_S)
        os.close(self._master)
        self._master = os.open(os.devnull, os.O_RDWR)

    def close(self) -> None:
        """End everything."""
        self.process.kill()
        self.process.wait()
        self._painted.stop(PATIENCE_S)
        os.close(self._master)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


Run = Callable[..., Screen]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Starts `locktop run` with these options on a shell script."""
    opened: list[Screen] = []

    def start(
        *options: str, script: str = "exec sleep 1000", tool: tuple[str, ...] = (COMMAND,)
    ) -> Screen:
        pid_file = tmp_path / "pid"
        begin = f"echo $$ > {pid_file}.new; mv {pid_file}.new {pid_file}"
        master, slave = pty.openpty()
        process = subprocess.Popen(
            [*tool, "run", *options, "--", "sh", "-c", f"{begin}; {script}"],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color"},
        )
        os.close(slave)
        until(pid_file.exists, "the program runs")
        opened.append(Screen(process, int(pid_file.read_text()), master))
        return opened[-1]

    yield start
    for screen in opened:
        screen.close()


@pytest.mark.parametrize(
    ("number", "options"), [(signal.SIGHUP, (END_WITH_SCREEN,)), (signal.SIGTERM, ())]
)
def test_a_signal_leaves_no_started_program_behind(
    number: signal.Signals, options: tuple[str, ...], run: Run
) -> None:
    screen = run(*options)
    screen.process.send_signal(number)
    # 0: on a busy machine the screen may have opened by then, and closes.
    assert screen.process.wait(PATIENCE_S) in (128 + number, 0)
    assert not screen.runs


def test_repeated_signals_leave_no_started_program_behind(run: Run) -> None:
    """A terminal that is gone causes several signals: from the kernel and from the shell."""
    screen = run(END_WITH_SCREEN)
    screen.wait_painted(b"Locks")
    _send_until_end(screen)
    # Not 0 if a signal comes while the screen closes.
    assert screen.process.returncode in (0, 128 + signal.SIGHUP, -signal.SIGHUP)
    assert not screen.runs


def test_repeated_hang_ups_leave_the_program_running(run: Run) -> None:
    screen = run()
    screen.wait_painted(b"Locks")
    _send_until_end(screen)
    assert screen.process.returncode in (0, 128 + signal.SIGHUP, -signal.SIGHUP)
    assert screen.runs


def _send_until_end(screen: Screen) -> None:
    end = time.monotonic() + PATIENCE_S
    while screen.process.poll() is None and time.monotonic() < end:
        screen.process.send_signal(signal.SIGHUP)
        time.sleep(0.0002)


def test_the_terminal_says_at_once_what_starts(run: Run) -> None:
    screen = run()
    screen.wait_painted(b"Starting sh...")
    screen.wait_painted(b"Locks")


@pytest.mark.parametrize("painted", [False, True])
def test_sighup_leaves_the_program_running(painted: bool, run: Run) -> None:
    screen = run()
    if painted:
        screen.wait_painted(b"Locks")
    screen.process.send_signal(signal.SIGHUP)
    assert screen.process.wait(PATIENCE_S) in (128 + signal.SIGHUP, 0)
    assert screen.runs


@pytest.mark.parametrize("options", [(), (END_WITH_SCREEN,)])
def test_a_lost_terminal_leaves_the_program_running(options: tuple[str, ...], run: Run) -> None:
    """The terminal does not control locktop, so the kernel sends no signal."""
    screen = run(*options)
    screen.wait_painted(b"Locks")
    screen.hang_up()
    assert screen.process.wait(PATIENCE_S) == 0
    assert screen.runs == (not options)


def test_sigterm_ends_the_screen_of_a_program_that_ignores_sigterm(run: Run) -> None:
    screen = run(script="trap '' TERM; while :; do sleep 1000; done")
    screen.wait_painted(b"Locks")
    screen.process.send_signal(signal.SIGTERM)
    assert screen.process.wait(PATIENCE_S) in (128 + signal.SIGTERM, 0)
    until(lambda: not screen.runs, "the program has ended")


def test_q_asks_before_it_ends_the_program(run: Run) -> None:
    screen = run()
    screen.wait_painted(b"Locks")
    screen.press(b"qqq")
    screen.wait_painted(b"leave it running")
    screen.press(ESCAPE)
    assert screen.runs
    screen.press(b"\x03")
    screen.press(b"y")
    assert screen.process.wait(PATIENCE_S) == 0
    assert not screen.runs


def test_q_and_k_leave_the_program_running(run: Run) -> None:
    screen = run()
    screen.wait_painted(b"Locks")
    screen.press(b"qk")
    assert screen.process.wait(PATIENCE_S) == 0
    screen.wait_painted(b"goes on as process %d" % screen.pid)
    assert screen.runs


def test_q_asks_nothing_with_keep(run: Run) -> None:
    screen = run("--keep")
    screen.wait_painted(b"Locks")
    screen.press(b"q")
    assert screen.process.wait(PATIENCE_S) == 0
    assert screen.runs


def test_q_asks_nothing_after_the_end_of_the_program(run: Run) -> None:
    screen = run()
    screen.wait_painted(b"Locks")
    os.kill(screen.pid, signal.SIGTERM)
    screen.wait_painted(b"ENDED")
    screen.press(b"q")
    assert screen.process.wait(PATIENCE_S) == 128 + signal.SIGTERM


def test_a_lost_terminal_ends_the_screen_of_an_ended_program(run: Run) -> None:
    screen = run()
    screen.wait_painted(b"Locks")
    os.kill(screen.pid, signal.SIGTERM)
    screen.wait_painted(b"ENDED")
    screen.hang_up()
    assert screen.process.wait(PATIENCE_S) == 128 + signal.SIGTERM  # that of the program


def test_a_fault_of_the_screen_has_its_status_and_leaves_the_program_running(run: Run) -> None:
    screen = run(tool=(sys.executable, "-c", FAULTY))
    assert screen.process.wait(PATIENCE_S) == 70
    screen.wait_painted(b"ZeroDivisionError")
    screen.wait_painted(b"goes on as process %d" % screen.pid)
    assert screen.runs


ENDS: dict[str, Callable[[Screen], None]] = {
    "quit": lambda screen: screen.press(b"qy"),
    "sigterm": lambda screen: screen.process.send_signal(signal.SIGTERM),
    "lost terminal": Screen.hang_up,
}


@pytest.mark.parametrize("end", ENDS)
def test_the_end_of_the_screen_ends_the_recording(end: str, run: Run, tmp_path: Path) -> None:
    screen = run("--record", str(tmp_path / "r"))
    screen.wait_painted(b"Locks")
    until((tmp_path / "r").exists, "the recording begins")
    ENDS[end](screen)
    screen.process.wait(PATIENCE_S)
    recording = Recording(tmp_path / "r")
    assert recording.damage == ""
    assert [recording.snapshot_at(time_ns).process.pid for time_ns in recording.times_ns()][1:]


def test_the_recording_beside_the_screen_has_the_marks_of_the_user(
    run: Run, tmp_path: Path
) -> None:
    screen = run("--record", str(tmp_path / "r"))
    screen.wait_painted(b"Locks")
    screen.press(b"m")
    screen.wait_painted(b"Mark 1 at")
    screen.press(b"qy")
    screen.process.wait(PATIENCE_S)
    recording = Recording(tmp_path / "r")
    assert [one.text for one in recording.notables() if "your" in one.text] == ["your mark 1"]
