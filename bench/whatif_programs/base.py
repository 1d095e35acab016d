"""The class of the real programs of bench/whatif_real.py, and helpers to run them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from shutil import which
from typing import ClassVar, NamedTuple

#: A time for each measurement of the truth, and for the begin before it, seconds.
MEASURED_S, BEGIN_S = 2.0, 1.0

_PATIENCE_S = 20.0
Setting = Mapping[str, int]
_SILENT = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)


class RealChange(NamedTuple):
    """A change, as locktop is asked and as it is really made."""

    name: str
    option: str  # of `locktop whatif`: --split
    subject: str  # of the option: a lock, a group of threads, or nothing
    amount: str
    setting: Setting  # what the changed program has, in place of the unchanged one's

    def is_of_lock(self) -> bool:
        return self.option in ("--hold", "--split", "--rw")


class Run(NamedTuple):
    """A program that runs."""

    pid: int
    count: Callable[[], float]  # of its work until now, by its own counters


class RealProgram(ABC):
    """A program with some settings."""

    name: str
    unit: str  # of its work
    #: A recording keeps 400,000 holds: seconds for which they are enough.
    recorded_s: float = 4.0
    base: ClassVar[Setting]
    changes: ClassVar[Sequence[RealChange]]

    @abstractmethod
    def prepare(self, cache: Path) -> None:
        """Build what is needed, and make the data. Raise SystemExit if something is missing."""

    @abstractmethod
    def running(
        self, setting: Setting, environment: Mapping[str, str]
    ) -> AbstractContextManager[Run]:
        """Return a context in which the program runs under its load."""

    def rate(self, setting: Setting) -> float:
        """Return the units of work a second of a run without the library."""
        with self.running(setting, {}) as run:
            time.sleep(BEGIN_S)
            first, first_s = run.count(), time.monotonic()
            time.sleep(MEASURED_S)
            return (run.count() - first) / (time.monotonic() - first_s)


@contextmanager
def process(
    command: Sequence[str | Path], environment: Mapping[str, str], **streams: int
) -> Iterator[subprocess.Popen[str]]:
    """Run a command until the block ends."""
    started = subprocess.Popen(
        [str(part) for part in command],
        env={**os.environ, **environment},
        text=True,
        **{**_SILENT, **streams},  # type: ignore[call-overload]
    )
    try:
        yield started
    finally:
        started.terminate()
        try:
            started.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()
        for stream in (started.stdin, started.stdout):
            if stream is not None:
                stream.close()


def on_cpus(command: Sequence[str | Path], count: int) -> list[str | Path]:
    """Return the command that runs on so many CPUs; 0: on all."""
    allowed = sorted(os.sched_getaffinity(0))[:count]
    return ["taskset", "-c", ",".join(map(str, allowed)), *command] if count else [*command]


def need(command: str, package: str) -> str:
    """Return the path of a command. Raises SystemExit."""
    found = which(command, path="/usr/bin:/usr/sbin:/bin:/sbin")
    if found is None:
        sys.exit(f"{command} is missing: apt-get install {package}")
    return found


def counting(started: subprocess.Popen[str]) -> Callable[[], float]:
    """Return a function that asks a process with a line, and reads its count."""
    asking, said = started.stdin, started.stdout
    assert asking is not None
    assert said is not None

    def count() -> float:
        asking.write("\n")
        asking.flush()
        return float(said.readline())

    return count
