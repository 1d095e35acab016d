"""`locktop watch` as its user sees it: what it says, line by line, and what its commands write."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support import tool
from support.targets import PATIENCE_S, Target

#: Nothing is held back, and looks are many.
EAGER = ("--rate", "1000/1s", "--every", "20ms")


@contextmanager
def watching(pid: int, *options: str | Path) -> Iterator[Target]:
    """`locktop watch`, which has looked once; its errors are among its lines."""
    command = shlex.join([tool.COMMAND, "watch", "-p", str(pid), *map(str, options)])
    with Target(["sh", "-c", f"exec {command} 2>&1"]) as watch:
        assert watch.line().startswith("watching ")
        yield watch


def line_with(watch: Target, text: str) -> str:
    """The next line that has ``text``."""
    while line := watch.line():
        if text in line:
            return line
    raise AssertionError(f"never said: {text}")


def rest_of(watch: Target) -> list[str]:
    lines = []
    while line := watch.line():
        lines.append(line)
    return lines


def read_when_there(path: Path) -> str:
    """What a command writes as its last deed, ended by a line "done"."""
    deadline = time.monotonic() + PATIENCE_S
    while not (path.exists() and path.read_text().endswith("done\n")):
        assert time.monotonic() < deadline, f"{path} is never written"
        time.sleep(0.01)  # between two questions; what counts is the answer
    return path.read_text().removesuffix("done\n")
