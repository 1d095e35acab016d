"""`locktop record` as its user sees it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from support import tool
from support.targets import Target

_END = re.compile(
    r"recorded ([\d.]+) s, ([\d,]+) snapshots, ([\d,]+) records(?: \(([\d,]+) lost\))?, "
    r"([\d.]+) (B|KiB|MiB|GiB)(?: of the last ([\d.]+) s)? to (.*)"
)
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


class End(Struct):
    """The last line of `locktop record`, in figures."""

    seconds: float
    snapshots: int
    records: int
    lost: int
    size: float  # bytes, from three digits
    kept_s: float | None  # what the segments have; None: all
    path: Path


@contextmanager
def recording(pid: int, path: Path, *options: str | Path, prefix: str = "") -> Iterator[Target]:
    """Start `locktop record`, and wait until it records. Its errors are among its lines."""
    command = shlex.join(
        [tool.COMMAND, "record", "-p", str(pid), "-o", str(path), *map(str, options)]
    )
    with Target(["sh", "-c", f"{prefix} exec {command} 2>&1"]) as recorder:
        line = recorder.line()
        assert line.startswith("recording "), line
        yield recorder


def end_of(recorder: Target) -> End:
    """Read the lines up to the last one, and return that line in figures."""
    while line := recorder.line():
        if match := _END.fullmatch(line):
            numbers = [int((text or "0").replace(",", "")) for text in match.group(2, 3, 4)]
            snapshots, records, lost = numbers
            size = float(match[5]) * _UNITS[match[6]]
            kept_s = float(match[7]) if match[7] else None
            return End(float(match[1]), snapshots, records, lost, size, kept_s, Path(match[8]))
    raise AssertionError("no line about the end of the recording")
