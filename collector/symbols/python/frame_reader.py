"""Requests the Python frames of a process from a worker, and waits no longer than asked."""

from __future__ import annotations

import json
import os
import posixpath
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

from locktop.collector.linux import saved_process
from locktop.collector.sanitize import clean
from locktop.collector.symbols.bounded_worker import BoundedWorker, SharedWorker, WorkerError

_WORKER = "locktop.collector.symbols.python.pystack_worker"
#: Longer than any answer takes, even on a busy machine.
_PATIENCE_S = 60.0
_HURRY_S = 0.1  # how soon hurry() is noticed
_MAX_ANSWER = 64 << 20  # bytes
#: In a row. Where threads come and go, every second reading meets a thread that has just ended.
_MAX_FAILURES = 10
_MAX_FRAMES = 2_000  # of one stack
_ENDED = "ended"
_FINAL = frozenset({"missing", "forbidden", "elsewhere"})  # the next try would fail, too
_NOTES = {
    "missing": "Python functions are not shown: pip install pystack",
    "forbidden": "Python functions are not shown: this user may not read the process's memory",
    "elsewhere": "Python functions are not shown: the interpreter's file is not here where the"
    " process has it (in a container, run locktop inside)",
    "unreadable": "Python functions are not shown: the interpreter's data cannot be read",
    _ENDED: "Python functions are not shown: their reader failed again and again",
}


class PythonFrame(NamedTuple):
    """The frame of one Python function."""

    function: str
    file: str  # base name
    line: int | None
    directory: str = ""


#: The Python functions that one call of the evaluation function executes, innermost frame first.
Run = tuple[PythonFrame, ...]
#: The runs of a thread's stack, innermost first.
Runs = tuple[Run, ...]


def new_worker() -> BoundedWorker:
    """Return a worker that reads Python frames; it starts when it is needed."""
    return BoundedWorker(_WORKER, max_answer=_MAX_ANSWER)


def new_shared_worker() -> SharedWorker:
    """Return a worker for readers of several processes of one user, one after the other."""
    return SharedWorker(_WORKER, max_answer=_MAX_ANSWER)


class PythonReader:
    """Reads one process's Python frames. One request at a time; nothing is raised.

    Attributes:
        asking: Whether a request has no answer yet.
        gave_up: Whether no request is sent any more.
        runs: By the threads of ask(): how often the kernel had put each on a CPU, after the last
            reading.
        took_s: How long the last answer took, in seconds; 0 for the first one, because the worker
            started meanwhile.
        note: Why there are no frames; "" if there are.
    """

    def __init__(self, pid: int, worker: BoundedWorker | None = None) -> None:
        self._pid = pid
        self._worker = worker or new_worker()
        self._sent_at = 0.0
        self._failures = 0
        self._is_hurried = False
        self._is_started = False
        self.asking = False
        self.gave_up = False
        self.took_s = 0.0
        self.runs: dict[int, int] = {}
        self.note = ""

    def ask(self, tids: Iterable[int] = ()) -> None:
        """Begin to read the stacks of all threads; answer() returns them later.

        ``tids``: threads for ``runs``.
        """
        if self.asking or self.gave_up:
            return
        try:
            self._worker.send(self._request(tids))
        except WorkerError:
            self._fail(_ENDED)
            return
        self.asking, self._sent_at = True, time.monotonic()

    def _request(self, tids: Iterable[int]) -> bytes:
        core = saved_process.get(self._pid)
        if core is None:
            return b" ".join(b"%d" % number for number in (self._pid, *tids))
        path = os.path.abspath(core.path)
        return json.dumps({"core": path, "exe": core.exe, "tids": list(tids)}).encode()

    def answer(self, timeout_s: float = 0.0) -> dict[int, Runs] | None:
        """Return the stacks by tid as soon as they are there, once; None before that."""
        if not self.asking:
            return None
        deadline = time.monotonic() + timeout_s
        while True:
            left = max(0.0, deadline - time.monotonic())
            try:
                data = self._worker.receive(min(left, _HURRY_S))
            except WorkerError:
                self._fail(_ENDED)
                return None
            if data is not None:
                return self._receive(data)
            if left > _HURRY_S and not self._is_hurried:
                continue
            if time.monotonic() - self._sent_at > _PATIENCE_S:
                self._fail(_ENDED)
            return None

    def hurry(self) -> None:
        """Let answer() wait no longer. For a signal handler: takes no lock."""
        self._is_hurried = True

    def close(self) -> None:
        """End the worker."""
        self.asking = False
        self._worker.close()

    def _receive(self, data: bytes) -> dict[int, Runs] | None:
        self.asking = False
        self.took_s = time.monotonic() - self._sent_at if self._is_started else 0.0
        self._is_started = True
        stacks = decode_answer(data)
        if isinstance(stacks, str):
            self._fail(stacks)
            return None
        self._failures, self.note, self.runs = 0, "", decode_runs(data)
        return stacks

    def _fail(self, reason: str) -> None:
        """Count a failure: a reading may fail because the process went on, or fail each time."""
        self._failures += 1
        if reason == _ENDED:
            self._worker.close()
        self.asking = False
        if reason in _FINAL or self._failures >= _MAX_FAILURES:
            self.gave_up = True
            self.note = _NOTES.get(reason, "")


def decode_answer(answer: bytes) -> dict[int, Runs] | str:
    """Return the stacks of an answer by tid, or the reason why there are none."""
    try:
        said: dict[str, Any] = json.loads(answer)
        if "threads" not in said:
            reason = said["failed"]
            return reason if isinstance(reason, str) else _ENDED
        return {int(tid): _runs(runs) for tid, runs in said["threads"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return _ENDED


def decode_runs(answer: bytes) -> dict[int, int]:
    """Return the runs in an answer by thread; none if there are no such numbers."""
    try:
        return {int(tid): int(count) for tid, count in json.loads(answer)["runs"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _runs(runs: list[list[tuple[str, str, int]]]) -> Runs:
    result = tuple(tuple(_frame(*frame) for frame in run) for run in runs)
    return result if sum(map(len, result)) <= _MAX_FRAMES else ()


def _frame(function: str, path: str, line: int) -> PythonFrame:
    directory, file = posixpath.split(clean(path))
    return PythonFrame(clean(function), file, int(line) or None, directory)
