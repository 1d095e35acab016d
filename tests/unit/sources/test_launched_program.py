"""Programs that locktop starts: their end, output and exit status."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.eventually import until
from support.targets import Compiler

from locktop.collector.errors import LocktopError
from locktop.collector.sources import launch
from locktop.collector.sources.launched_program import EndedEarlyError, LaunchedProgram
from locktop.tui.commands.run import report_end


def started(*arguments: str, **options: object) -> LaunchedProgram:
    command = [sys.executable, "-c", *arguments]
    return LaunchedProgram(sys.executable, command, **options)  # type: ignore[arg-type]


def wait_until_ended(program: LaunchedProgram) -> None:
    """Wait for the end of the program without reading its exit status."""
    os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOWAIT)


def test_a_program_that_ended_at_once_is_reported_with_its_last_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log"
    with started("import sys; print('no config'); sys.exit(7)", output=str(log)) as program:
        wait_until_ended(program)
        with pytest.raises(EndedEarlyError, match=r"status 7 before .*: no config") as ended:
            program.source()
    assert report_end(program, ended.value) == 7
    assert capsys.readouterr().err.endswith(f"\nlocktop: its output is in {log}\n")
    assert log.read_text() == "no config\n"


def test_a_slow_start_calls_back_until_the_library_is_ready(
    tmp_path: Path, compiler: Compiler
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    slow = compiler.program("slow_library", "-shared", "-fPIC", "-Wl,-z,initfirst")
    waits = 0

    def on_wait() -> None:
        nonlocal waits
        waits += 1
        if waits == 3:
            pipe.write_text("x")

    variables = {"LD_PRELOAD": str(slow), "SLOW_START": str(pipe)}
    sleep = str(shutil.which("sleep"))
    started_slowly = LaunchedProgram(
        sleep, ["sleep", "1000"], environment=variables, output=os.devnull
    )
    with started_slowly, closing(started_slowly.source(on_wait=on_wait)):
        assert waits >= 3


def test_a_program_gets_further_variables_and_keeps_its_own_preloaded_library(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    other = str(launch.library("nop"))
    code = "import os; print(os.environ['LD_PRELOAD'], os.environ['NEW'])"
    with started(code, output=str(log), environment={"LD_PRELOAD": other, "NEW": "1"}) as program:
        wait_until_ended(program)
    assert log.read_text() == f"{launch.library()}:{other} 1\n"


def test_ending_a_running_program_is_status_0(tmp_path: Path) -> None:
    with started("import signal; signal.pause()", output=str(tmp_path / "log")) as program:
        pid = program.pid
    assert program.status == 0
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize(
    ("number", "end"),
    [
        (signal.SIGTERM, SystemExit),
        (signal.SIGHUP, SystemExit),
        (signal.SIGINT, KeyboardInterrupt),
    ],
)
def test_a_signal_during_the_start_leaves_no_program_behind(
    number: signal.Signals,
    end: type[BaseException],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pids = []

    class Interrupted(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            pids.append(self.pid)
            signal.raise_signal(number)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    before = signal.getsignal(number)
    code, log = "import signal; signal.pause()", str(tmp_path / "log")
    program = started(code, output=log, ends_with_screen=True)
    with pytest.raises(end) as left, program:
        pytest.fail("it went on")
    if isinstance(left.value, SystemExit):
        assert left.value.code == 128 + number
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)
    assert signal.getsignal(number) == before


def test_after_sighup_the_program_goes_on(tmp_path: Path) -> None:
    program = started("import signal; signal.pause()", output=str(tmp_path / "log"))
    with pytest.raises(SystemExit), program:
        signal.raise_signal(signal.SIGHUP)
    os.kill(program.pid, signal.SIGKILL)
    wait_until_ended(program)


def test_only_the_first_signal_decides(tmp_path: Path) -> None:
    code = "import signal; signal.pause()"
    with started(code, output=str(tmp_path / "log"), ends_with_screen=True) as program:
        program.on_end_signal(signal.SIGTERM)
        program.on_end_signal(signal.SIGHUP)
        wait_until_ended(program)
    assert program.status == 0
    with started(code, output=str(tmp_path / "log2")) as program:
        program.on_end_signal(signal.SIGHUP)
        program.on_end_signal(signal.SIGTERM)
        program.kill()
    assert program.messages()[0].endswith(f"goes on as process {program.pid}")
    os.kill(program.pid, signal.SIGKILL)
    wait_until_ended(program)


def test_a_program_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    code = (
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True)\n"
        "while True: signal.pause()"
    )
    log = tmp_path / "log"
    with started(code, output=str(log)) as program:
        until(lambda: log.stat().st_size > 0, "the program ignores SIGTERM")
        program.on_end_signal(signal.SIGTERM)
        program.kill()
        wait_until_ended(program)
    assert program.status == 0


def test_a_program_ended_by_a_signal_gives_128_and_its_number(tmp_path: Path) -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    with started(code, output=str(tmp_path / "log")) as program:
        wait_until_ended(program)
    assert program.status == 137
    assert "SIGKILL" in program.messages()[0]


def test_output_overwrites_no_file(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("precious")
    with pytest.raises(LocktopError, match="exists"), started("pass", output=str(log)):
        pass
    assert log.read_text() == "precious"
