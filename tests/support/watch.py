"""`locktop watch` as its user sees it: its lines, and the files that its commands write."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support import tool
from support.targets import PATIENCE_S, Target

#: No alert is held back, and scans are frequent.
EAGER = ("--rate", "1000/1s", "--every", "20ms")


@contextmanager
def watching(pid: int, *options: str | Path) -> Iterator[Target]:
    """Start `locktop watch`, and wait for its first scan. Its errors are among its lines."""
    command = shlex.join([tool.COMMAND, "watch", "-p", str(pid), *map(str, options)])
    with Target(["sh", "-c", f"exec {command} 2>&1"]) as watch:
        assert watch.line().startswith("watching ")
        yield watch


def line_with(watch: Target, text: str) -> str:
    """Return the next line that contains ``text``."""
    while line := watch.line():
        if text in line:
            return line
    raise AssertionError(f"never said: {text}")


def rest_of(watch: Target) -> list[str]:
    """Return all further lines, until `locktop watch` ends."""
    lines = []
    while line := watch.line():
        lines.append(line)
    return lines


def read_when_there(path: Path) -> str:
    """Wait until a file ends with a line "done"; return the text before that line."""
    deadline = time.monotonic() + PATIENCE_S
    while not (path.exists() and path.read_text().endswith("done\n")):
        assert time.monotonic() < deadline, f"{path} is never written"
        time.sleep(0.01)  # only the pause between two reads
    return path.read_text().removesuffix("done\n")
