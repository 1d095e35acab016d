"""Counts of function calls by uftrace, which is independent of the library."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from support.targets import PATIENCE_S


def counts(
    uftrace: Path, command: Sequence[str | Path], directory: Path, answers: str = ""
) -> Mapping[str, int]:
    """Run an instrumented program; return how often each function was called, by name.

    Args:
        uftrace: the program.
        command: the program to run and its arguments.
        directory: a new directory for the trace.
        answers: the lines for the standard input.
    """
    record = [uftrace, "record", "--no-libcall", "--no-event", "--no-pager", "-d", directory]
    subprocess.run(
        [str(part) for part in (*record, *command)],
        input=answers.encode(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=True,
        timeout=PATIENCE_S,
    )
    report = [str(uftrace), "report", "--no-pager", "-d", str(directory), "-f", "call"]
    said = subprocess.run(report, capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    lines = re.finditer(r"^\s*(\d+)\s+([\w.]+)\s*$", said.stdout, re.MULTILINE)
    return {line[2]: int(line[1]) for line in lines}
