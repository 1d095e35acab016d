"""Runs pip, and says each second what it does.

    python release/pip_progress.py TITLE PIP ARGUMENT...

On a terminal the line is renewed; elsewhere a line is printed at the begin and at the end. pip's
own output is shown only if it fails. This file imports nothing but the standard library, because it
runs before anything is installed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

_WIDTH = 79
_STEP = re.compile(r"(Collecting|Building|Preparing|Installing|Using cached|Downloading) ?(.*)")


class Progress:
    """The last step of pip, and how long it all takes."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._begin = time.monotonic()
        self._step = "starting pip"
        self._ended = threading.Event()

    def note(self, line: str) -> None:
        """Keep a line of pip if it tells a step."""
        match = _STEP.match(line.strip())
        if match:
            self._step = f"{match[1].lower()} {match[2]}"

    def show(self) -> None:
        """Renew the line each second until `end`."""
        while not self._ended.wait(1.0 if sys.stdout.isatty() else 3600.0):
            self._print(self._step, end="")

    def begin(self) -> None:
        """Say what is done."""
        self._print(self._step, end="" if sys.stdout.isatty() else "\n")

    def end(self, text: str) -> None:
        """Say how it ended."""
        self._ended.set()
        self._print(text, end="\n")

    def _print(self, text: str, end: str) -> None:
        elapsed_s = time.monotonic() - self._begin
        line = f"{self._title}, {elapsed_s:3.0f} s: {text}"[:_WIDTH]
        start, rest = ("\r", " " * (_WIDTH - len(line))) if sys.stdout.isatty() else ("", "")
        print(f"{start}{line}{rest}", end=end, flush=True)


def main(title: str, command: Sequence[str]) -> int:
    """Run pip; return its exit status."""
    progress = Progress(title)
    progress.begin()
    shown = threading.Thread(target=progress.show, daemon=True)
    shown.start()
    pip = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    lines = []
    assert pip.stdout is not None
    for line in pip.stdout:
        lines.append(line)
        progress.note(line)
    status = pip.wait()
    progress.end("done" if status == 0 else f"pip failed with status {status}")
    shown.join()
    if status:
        sys.stdout.writelines(lines)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
