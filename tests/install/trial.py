"""Tries an installed locktop in a root file system that has python3 and nothing else.

    trial.py LOCKTOP [PART...]

LOCKTOP is the path of the command. The parts are methods of Trial; without any, all but OF_SOME are
tried. The last line of the output is "all parts hold". A part that does not hold ends in an
AssertionError. This file imports nothing but the standard library.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

PATIENCE_S = 120
#: Parts that are tried only if they are named.
OF_SOME = ("library", "single_file")
#: A thread waits for a lock that the main thread holds; the program ends when its input ends.
PROGRAM = """
import sys, threading
lock = threading.Lock()
lock.acquire()
threading.Thread(target=lock.acquire, name="waits", daemon=True).start()
print("started", flush=True)
sys.stdin.read()
"""


class Trial:
    def __init__(self, locktop: str) -> None:
        self._locktop = locktop

    def nothing_else(self) -> None:
        """There is no compiler, and no file of the source tree."""
        assert not any(map(shutil.which, ("cc", "gcc", "clang", "make", "pip")))

    def version(self) -> None:
        assert self._output("--version").startswith("locktop ")

    def demo(self) -> None:
        report = self._output("demo")
        assert "counting for" in report, report
        assert "g_cache_lock" in report, report

    def snapshot(self) -> None:
        """A program that a shell starts with the library is counted exactly."""
        with self._started_by_shell() as program:
            document = self._scan_until_a_thread_waits(program.pid)
            assert document["source"] == "preload", document["source"]
            (waiting,) = [thread for thread in document["threads"] if thread["waiting_for"]]
            assert waiting["waiting_for"]["kind"] == "sem", waiting
            # A child process of locktop, which needs locktop's modules, reads Python's functions.
            assert "_bootstrap_inner" in json.dumps(document["stacks"])
            assert self._status("check", "-p", str(program.pid)) == 0

    def deadlock(self) -> None:
        """The demonstration of a deadlock is found."""
        environment = self._environment()
        demo = Path(environment["LD_PRELOAD"]).parents[1] / "bin" / "locktop-demo"
        with subprocess.Popen([str(demo), "--deadlock"], env=environment) as program:
            try:
                end = time.monotonic() + PATIENCE_S
                while self._status("check", "-p", str(program.pid)) != 1:
                    assert time.monotonic() < end
            finally:
                program.kill()

    def attach(self) -> None:
        """The screen opens on a running program."""
        with self._started_by_shell() as program:
            status, output = self._screen("-p", str(program.pid))
            assert status == 0, output

    def run(self) -> None:
        """The screen opens on a program that it starts, which goes on after q."""
        program = [sys.executable, "-c", "import time; time.sleep(600)"]
        status, output = self._screen("run", "--keep", "--", *program)
        assert status == 0, output

    def library(self) -> None:
        """A program runs with the library and has a shared file."""
        with self._started_by_shell() as program:
            (shared,) = Path("/dev/shm").glob(f"locktop-{program.pid}-*")
            assert shared.stat().st_size > 0

    def single_file(self) -> None:
        """The single file unpacks into SHIV_ROOT, beside other versions, or says why not."""
        refused = subprocess.run(
            [self._locktop, "--version"],
            env={**os.environ, "HOME": "/proc"},
            stderr=subprocess.PIPE,
            text=True,
        )
        assert refused.returncode == 2, refused
        assert refused.stderr.count("\n") == 1, refused
        assert "Set SHIV_ROOT to a directory" in refused.stderr, refused
        os.environ["SHIV_ROOT"] = "/opt/unpacked"
        first = Path(self._environment()["LD_PRELOAD"])
        self._locktop = shutil.copy(self._locktop, "/tmp/locktop-2")
        second = Path(self._environment()["LD_PRELOAD"])
        assert first != second
        for library in (first, second):
            assert library.is_file()
            assert str(library).startswith("/opt/unpacked/")

    def _output(self, *arguments: str) -> str:
        done = subprocess.run(
            [self._locktop, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            timeout=PATIENCE_S,
            check=True,
        )
        return done.stdout

    def _status(self, *arguments: str) -> int:
        command = [self._locktop, *arguments]
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=PATIENCE_S
        ).returncode

    def _environment(self) -> dict[str, str]:
        """Return the variables of a shell after `eval "$(locktop env)"`."""
        lines = subprocess.run(
            ["sh", "-c", f'eval "$({self._locktop} env)"; env'],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout.splitlines()
        return dict(line.split("=", 1) for line in lines)

    def _started_by_shell(self) -> subprocess.Popen[str]:
        program = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            env=self._environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert program.stdout is not None
        assert program.stdout.readline() == "started\n"
        return program  # its context manager closes the input, and waits

    def _scan_until_a_thread_waits(self, pid: int) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE_S
        while True:
            document: dict[str, Any] = json.loads(
                self._output("snapshot", "-p", str(pid), "--format", "json")
            )
            if any(thread["waiting_for"] for thread in document["threads"]):
                return document
            assert time.monotonic() < end, document

    def _screen(self, *arguments: str) -> tuple[int, bytes]:
        """Open the screen on a terminal, and press q when it shows a row of threads or locks."""
        pid, terminal = pty.fork()
        if pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
            os.execv(self._locktop, [self._locktop, *arguments])
        output = b""
        pressed = False
        end = time.monotonic() + PATIENCE_S
        try:
            while time.monotonic() < end and select.select([terminal], [], [], PATIENCE_S)[0]:
                output += os.read(terminal, 65536)
                if not pressed and b"python" in output and b"preload" in output:
                    pressed = True
                    os.write(terminal, b"q")
        except OSError:  # the other end is closed
            pass
        finally:
            os.kill(pid, signal.SIGKILL if not pressed else 0)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        assert pressed, output
        return status, output


def main(locktop: str, *parts: str) -> None:
    trial = Trial(locktop)
    names = [name for name in vars(Trial) if not name.startswith("_")]
    for name in parts or names:
        if not parts and name in OF_SOME:
            continue
        print(name, flush=True)
        getattr(trial, name)()
    print("all parts hold")


if __name__ == "__main__":
    main(*sys.argv[1:])
