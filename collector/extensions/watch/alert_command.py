"""The command that an alert runs: one at a time, with a time limit for it and its children."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping

from locktop.collector.errors import reason_of

#: The time between SIGTERM and SIGKILL.
GRACE_S = 2.0
_POLL_S = 0.02


class AlertCommand:
    """A command line for /bin/sh, which may run for ``limit_s`` seconds.

    SIGTERM ends a command that runs longer, and SIGKILL follows after ``grace_s`` seconds.

    Environment variables describe the alert. No text is inserted into the line, because the target
    process chooses the names. The output of the command goes to the standard error of locktop.
    """

    def __init__(self, line: str, limit_s: float, grace_s: float = GRACE_S) -> None:
        self.line = line
        self._limit_s = limit_s
        self._grace_s = grace_s
        self._process: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0

    @property
    def running(self) -> bool:
        """Whether the command was running at the last call of ``poll``."""
        return self._process is not None

    def start(self, variables: Mapping[str, str], text: str) -> str:
        """Start the command. A command that is running is not started again.

        Args:
            variables: The environment variables.
            text: The standard input.

        Returns:
            A message about an error, "" for success.
        """
        if self._process is not None:
            return "the command of the last alert still runs, so it was not started again"
        try:
            process = subprocess.Popen(
                ["/bin/sh", "-c", self.line],
                stdin=subprocess.PIPE,
                stdout=sys.stderr.fileno(),
                env={**os.environ, **variables},
                start_new_session=True,
            )
        except OSError as error:
            return f"the command cannot be started: {reason_of(error)}"
        self._process, self._started_at = process, time.monotonic()
        assert process.stdin is not None
        # One line fits into the pipe even if the command never reads it.
        with contextlib.suppress(BrokenPipeError), process.stdin:
            process.stdin.write(f"{text}\n".encode("utf-8", "backslashreplace"))
        return ""

    def poll(self) -> str:
        """Check whether the command has ended, and kill it after its time limit.

        Returns:
            A message about an error, "" without one.
        """
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
        """End the command and its children."""
        process, self._process = self._process, None
        if process is None:
            return
        os.killpg(process.pid, signal.SIGTERM)
        deadline = time.monotonic() + self._grace_s
        while not _has_ended(process) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        _kill_group(process)
        process.wait()


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Return whether the process has ended, without reaping it. After reaping, another process
    could get its number, which is that of its group."""
    flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, process.pid, flags) is not None


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    # Also after the command has ended: its background processes must not pile up.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
