"""Asks a process of our own for another one's Python frames, and never waits for it unasked."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from typing import Any, NamedTuple

from locktop.collector.sanitize import clean

#: Longer than any answer takes, even on a machine that has much else to do.
_PATIENCE_S = 60.0
_HURRY_S = 0.1  # so soon hurry() is heard
_MAX_ANSWER = 64 << 20  # bytes
#: In a row. Where threads come and go, every second reading meets one that is just gone.
_MAX_FAILURES = 10
_LONGEST = 2_000  # frames of one stack
_NOTES = {
    "missing": "Python functions are not shown: pip install pystack",
    "forbidden": "Python functions are not shown: this user may not read the process's memory",
    "elsewhere": "Python functions are not shown: the interpreter's file is not here where the"
    " process has it (in a container, run locktop inside)",
    "unreadable": "Python functions are not shown: the interpreter's data cannot be read",
    "ended": "Python functions are not shown: what reads them failed again and again",
}


class PythonFrame(NamedTuple):
    """One Python function's frame."""

    function: str
    file: str  # base name
    line: int | None


#: What one call of the evaluation function executes, innermost frame first.
Run = tuple[PythonFrame, ...]
#: The runs of a thread's stack, innermost first.
Runs = tuple[Run, ...]


class PythonReader:
    """Reads one process's Python frames. One question at a time; nothing is raised."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._child: subprocess.Popen[bytes] | None = None
        self._buffer = b""
        self._asked_at = 0.0
        self._failures = 0
        self._hurried = False
        self.asking = False
        self.gave_up = False
        self.took_s = 0.0  # the last answer
        self.note = ""  # why there are none

    def ask(self) -> None:
        """Begin to read the stacks of all threads; answer() has them later."""
        if self.asking or self.gave_up:
            return
        try:
            self._say(b"%d\n" % self._pid)
        except OSError:
            self._failed("ended")
            return
        self.asking, self._asked_at = True, time.monotonic()

    def answer(self, timeout_s: float = 0.0) -> dict[int, Runs] | None:
        """Return the stacks by tid as soon as they are there, once; None before that."""
        if not self.asking:
            return None
        deadline = time.monotonic() + timeout_s
        while True:
            left = max(0.0, deadline - time.monotonic())
            if not self._is_readable(min(left, _HURRY_S)):
                if left > _HURRY_S and not self._hurried:
                    continue
                if time.monotonic() - self._asked_at > _PATIENCE_S:
                    self._failed("ended")
                return None
            line = self._line()
            if line is not None:
                return self._taken(line)
            if not self.asking:
                return None

    def hurry(self) -> None:
        """Let answer() wait no longer. For a handler of signals."""
        self._hurried = True

    def close(self) -> None:
        """End the process that reads."""
        self.asking = False
        if self._child is None:
            return
        self._child.kill()
        for pipe in (self._child.stdin, self._child.stdout):
            with contextlib.suppress(OSError):
                assert pipe is not None
                pipe.close()
        self._child.wait()
        self._child = None

    def _say(self, question: bytes) -> None:
        if self._child is None:
            self._buffer = b""
            self._child = subprocess.Popen(
                # -P: nothing is imported from the directory we happen to be in
                [sys.executable, "-P", "-m", "locktop.collector.symbols.python.pystack_worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                start_new_session=True,  # the terminal's signals are for us alone
            )
        assert self._child.stdin is not None
        self._child.stdin.write(question)

    def _is_readable(self, timeout_s: float) -> bool:
        assert self._child is not None
        poll = select.poll()  # any number of descriptor
        poll.register(self._child.stdout, select.POLLIN)  # type: ignore[arg-type]
        return bool(poll.poll(timeout_s * 1000))

    def _line(self) -> bytes | None:
        assert self._child is not None
        assert self._child.stdout is not None
        piece = os.read(self._child.stdout.fileno(), 1 << 20)
        self._buffer += piece
        if not piece or len(self._buffer) > _MAX_ANSWER:
            self._failed("ended")
            return None
        line, end, rest = self._buffer.partition(b"\n")
        if not end:
            return None
        self._buffer = rest
        return line

    def _taken(self, line: bytes) -> dict[int, Runs] | None:
        self.asking = False
        self.took_s = time.monotonic() - self._asked_at
        try:
            said: dict[str, Any] = json.loads(line)
            if "threads" in said:
                stacks = {int(tid): _runs(runs) for tid, runs in said["threads"].items()}
                self._failures, self.note = 0, ""
                return stacks
            self._failed(said["failed"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            self._failed("ended")
        return None

    def _failed(self, why: str) -> None:
        """A reading may fail because the process went on; some failures come again each time."""
        self._failures += 1
        if why == "ended":
            self.close()
        self.asking = False
        if why in ("missing", "forbidden", "elsewhere") or self._failures >= _MAX_FAILURES:
            self.gave_up = True
            self.note = _NOTES.get(why, "")


def _runs(runs: list[list[tuple[str, str, int]]]) -> Runs:
    found = tuple(tuple(_frame(*frame) for frame in run) for run in runs)
    return found if sum(map(len, found)) <= _LONGEST else ()


def _frame(function: str, path: str, line: int) -> PythonFrame:
    return PythonFrame(clean(function), clean(path.rpartition("/")[2]), int(line) or None)
