"""The command that an alarm runs: one at a time, for so long, and with all that it started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping

#: Between being asked to end and being killed.
_GRACE_S = 2.0
_SCAN_S = 0.02


class AlertCommand:
    """A line for /bin/sh, which may run for ``limit_s`` seconds.

    It is told of the alarm by variables of its environment, never by text put into the line: names
    are a stranger's. What it writes goes to our standard error.
    """

    def __init__(self, line: str, limit_s: float) -> None:
        self.line = line
        self._limit_s = limit_s
        self._process: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0

    @property
    def running(self) -> bool:
        """Whether the last one went on at the last look()."""
        return self._process is not None

    def start(self, variables: Mapping[str, str], text: str) -> str:
        """Start it with ``text`` as its input; return what went wrong, "" if nothing.

        While it runs it is not started again.
        """
        if self._process is not None:
            return "the command of the last alarm still runs, so it was not started again"
        try:
            process = subprocess.Popen(
                ["/bin/sh", "-c", self.line],
                stdin=subprocess.PIPE,
                stdout=sys.stderr.fileno(),
                env={**os.environ, **variables},
                start_new_session=True,
            )
        except OSError as error:
            return f"the command cannot be started: {error.strerror}"
        self._process, self._started_at = process, time.monotonic()
        assert process.stdin is not None
        # A line fits into the pipe whether it is read or not.
        with contextlib.suppress(BrokenPipeError), process.stdin:
            process.stdin.write(f"{text}\n".encode("utf-8", "backslashreplace"))
        return ""

    def scan(self) -> str:
        """See whether it has ended; return what is to be said of that, "" if nothing."""
        process = self._process
        if process is None:
            return ""
        if _has_ended(process):
            self._process = None
            _kill_group(process)
            status = process.wait()
            return f"the command ended with status {status}" if status else ""
        if time.monotonic() - self._started_at < self._limit_s:
            return ""
        self.stop()
        return f"the command had not ended after {self._limit_s:g} s and was killed"

    def stop(self) -> None:
        """End it and all that it started."""
        process, self._process = self._process, None
        if process is None:
            return
        os.killpg(process.pid, signal.SIGTERM)
        patience = time.monotonic() + _GRACE_S
        while not _has_ended(process) and time.monotonic() < patience:
            time.sleep(_SCAN_S)
        _kill_group(process)
        process.wait()


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Without letting go of its number, which is its group's: another process could get it."""
    flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, process.pid, flags) is not None


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    # To one that has ended too: what it left in the background must not pile up.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
