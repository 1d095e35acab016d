"""Runs glibc's tests bare and with the library, and compares what comes of them."""

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

#: How often a test is run again, both ways, before a difference counts.
AGAIN = 3

UNSUPPORTED = 77
"""The exit status of a test that finds what it needs missing."""


@dataclass(frozen=True)
class Outcome:
    """What came of one run."""

    result: str
    """"ok", or why not; what must be the same with the library and without."""
    seconds: float


@dataclass(frozen=True)
class Comparison:
    """What came of a test, first bare and with the library; runs beyond the first were alone."""

    name: str
    bare: tuple[Outcome, ...]
    watched: tuple[Outcome, ...]

    @property
    def differs(self) -> bool:
        """Whether it does with the library, run alone, what it never did without.

        A test that does now this and now that without the library proves nothing.
        """
        bare = {outcome.result for outcome in self.bare}
        watched = {outcome.result for outcome in self.watched[1:] or self.watched}
        return len(bare) == 1 and not watched <= bare


class Runner:
    """Runs the programs of tests, bare or with the library at one of its levels."""

    def __init__(self, programs: Mapping[str, Path], library: Mapping[str, str]) -> None:
        self._programs = programs
        self._library = library
        self._running: set[subprocess.Popen[bytes]] = set()

    def stop(self) -> None:
        """End what still runs."""
        for process in list(self._running):
            end_session(process)

    def compare(self, name: str) -> Comparison:
        """Run a test once both ways."""
        return Comparison(name, (self._run(name, {}),), (self._run(name, self._library),))

    def again(self, first: Comparison) -> Comparison:
        """Run a test some times more, both ways in turn, and add what comes of it."""
        runs = [self.compare(first.name) for _ in range(AGAIN)]
        bare = sum((run.bare for run in runs), first.bare)
        return Comparison(first.name, bare, sum((run.watched for run in runs), first.watched))

    def _run(self, name: str, library: Mapping[str, str]) -> Outcome:
        directory = BUILD / "work" / name / ("watched" if library else "bare")
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        (directory / "Makefile").touch()  # some open it, as one is where glibc runs them
        known = {"program": self._programs[name], "directory": directory, "bin": BIN}
        needs = particular(name)
        own = {variable: value.format(**known) for variable, value in needs.environment.items()}
        command = [str(self._programs[name]), *(text.format(**known) for text in needs.arguments)]
        with (directory / "output").open("wb") as output:
            process = subprocess.Popen(
                command,
                cwd=directory,
                env=bare_environment() | own | dict(library),
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


def bare_environment() -> dict[str, str]:
    """Return our own environment without the library, with the shared libraries of tests."""
    own = {
        name: value
        for name, value in os.environ.items()
        if name != "LD_PRELOAD" and not name.startswith("LOCKTOP_")
    }
    return own | {"LD_LIBRARY_PATH": str(BIN), "LC_ALL": "C"}


def end_session(leader: subprocess.Popen[bytes]) -> None:
    """End a process and what it left running: tests start processes in groups of their own."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            session = path.read_text().rpartition(")")[2].split()[3]
            if int(session) == leader.pid:
                os.kill(int(path.parent.name), signal.SIGKILL)
        except (FileNotFoundError, ProcessLookupError):
            pass  # it ended meanwhile
    leader.wait()


@contextmanager
def library_environment(level: str | None, order: str = "1") -> Iterator[dict[str, str]]:
    """Give the variables that load the library into a test, with a directory for its files.
    ``order``: LOCKTOP_ORDER.

    Raises AssertionError when a program with them is not watched: then all would look alike.
    """
    with tempfile.TemporaryDirectory(prefix="locktop-glibc-", dir="/dev/shm") as directory:
        variables = preload_environment(level) | {"LOCKTOP_DIR": directory, "LOCKTOP_ORDER": order}
        with subprocess.Popen(
            ["cat"],
            env=bare_environment() | variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as cat:
            assert cat.stdin is not None
            assert cat.stdout is not None
            cat.stdin.write(b"running\n")
            cat.stdin.flush()
            cat.stdout.readline()
            files = list(Path(directory).glob(f"*-{cat.pid}-*"))
        assert files, "a program started with the library is not watched by it"
        yield variables
