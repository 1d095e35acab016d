"""Runs glibc's tests with the library and without, and compares the results."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from glibc.build import BIN, BUILD
from glibc.particulars import particular
from locktop.collector.sources.launch import preload_environment

#: The further runs of a test, with and without the library, before a difference counts.
AGAIN = 3

UNSUPPORTED = 77
"""The exit status of a test whose requirements are missing."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one run."""

    result: str
    """"ok" or the reason; must be the same with the library and without."""
    seconds: float


@dataclass(frozen=True)
class Comparison:
    """The outcomes of a test. All runs but the first of each kind were alone on the machine."""

    name: str
    unprepared: tuple[Outcome, ...]
    watched: tuple[Outcome, ...]

    @property
    def differs(self) -> bool:
        """Whether a run with the library, alone, has an outcome that no run without it had.

        A test whose outcomes without the library vary proves nothing.
        """
        unprepared = {outcome.result for outcome in self.unprepared}
        watched = {outcome.result for outcome in self.watched[1:] or self.watched}
        return len(unprepared) == 1 and not watched <= unprepared


class Runner:
    """Runs the programs of tests, without the library or with it at one level."""

    def __init__(self, programs: Mapping[str, Path], library: Mapping[str, str]) -> None:
        self._programs = programs
        self._library = library
        self._running: set[subprocess.Popen[bytes]] = set()

    def stop(self) -> None:
        """End all processes that still run."""
        for process in list(self._running):
            end_session(process)

    def compare(self, name: str) -> Comparison:
        """Run a test once without the library and once with it."""
        return Comparison(name, (self._run(name, {}),), (self._run(name, self._library),))

    def again(self, first: Comparison) -> Comparison:
        """Run a test AGAIN more times, without and with the library, and add the outcomes."""
        runs = [self.compare(first.name) for _ in range(AGAIN)]
        unprepared = sum((run.unprepared for run in runs), first.unprepared)
        watched = sum((run.watched for run in runs), first.watched)
        return Comparison(first.name, unprepared, watched)

    def _run(self, name: str, library: Mapping[str, str]) -> Outcome:
        directory = BUILD / "work" / name / ("watched" if library else "unprepared")
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        (
            directory / "Makefile"
        ).touch()  # some tests open it, since glibc runs them beside a Makefile
        known = {"program": self._programs[name], "directory": directory, "bin": BIN}
        needs = particular(name)
        own = {variable: value.format(**known) for variable, value in needs.environment.items()}
        command = [str(self._programs[name]), *(text.format(**known) for text in needs.arguments)]
        with (directory / "output").open("wb") as output:
            process = subprocess.Popen(
                command,
                cwd=directory,
                env=unprepared_environment() | own | dict(library),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self._running.add(process)
            began = time.monotonic()
            try:
                result = _result(process.wait(needs.limit_s))
            except subprocess.TimeoutExpired:
                result = f"hangs for {needs.limit_s} s"
            finally:
                end_session(process)
                self._running.discard(process)
        return Outcome(result, time.monotonic() - began)


def _result(status: int) -> str:
    if status < 0:
        return signal.Signals(-status).name
    return {0: "ok", UNSUPPORTED: "unsupported"}.get(status, f"exit {status}")


def unprepared_environment() -> dict[str, str]:
    """Return this process's environment without locktop, with the shared libraries of tests."""
    own = {
        name: value
        for name, value in os.environ.items()
        if name != "LD_PRELOAD" and not name.startswith("LOCKTOP_")
    }
    return own | {"LD_LIBRARY_PATH": str(BIN), "LC_ALL": "C"}


def end_session(leader: subprocess.Popen[bytes]) -> None:
    """End a process and all processes of its session: tests start own process groups."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            session = path.read_text().rpartition(")")[2].split()[3]
            if int(session) == leader.pid:
                os.kill(int(path.parent.name), signal.SIGKILL)
        except (FileNotFoundError, ProcessLookupError):
            pass  # the process ended meanwhile
    leader.wait()


@contextmanager
def library_environment(level: str | None, order: str = "1") -> Iterator[dict[str, str]]:
    """Return the variables that load the library into a test, with a directory for its files.

    Args:
        level: the library's level, None for its default.
        order: the value of LOCKTOP_ORDER.

    Raises:
        AssertionError: a program with these variables does not load the library. A comparison
            would then show no difference.
    """
    with tempfile.TemporaryDirectory(prefix="locktop-glibc-", dir="/dev/shm") as directory:
        variables = preload_environment(level) | {"LOCKTOP_DIR": directory, "LOCKTOP_ORDER": order}
        with subprocess.Popen(
            ["cat"],
            env=unprepared_environment() | variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as cat:
            assert cat.stdin is not None
            assert cat.stdout is not None
            cat.stdin.write(b"running\n")
            cat.stdin.flush()
            cat.stdout.readline()
            files = list(Path(directory).glob(f"*-{cat.pid}-*"))
        assert files, "a program with the variables does not load the library"
        yield variables
