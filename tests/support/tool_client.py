"""Runs of `locktop` as forks of `tool_server.py`, which starts at the first run."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

_SERVER = Path(__file__).with_name("tool_server.py")


class ToolClient:
    """One server, for runs of any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None

    def run(
        self, arguments: Sequence[str], environment: Mapping[str, str], timeout_s: float
    ) -> subprocess.CompletedProcess[str]:
        """Run ``locktop ARGUMENTS`` in the current directory, to its end.

        Raises:
            subprocess.TimeoutExpired: it took more than ``timeout_s``, and was killed.
        """
        request = {
            "arguments": arguments,
            "environment": dict(environment),
            "directory": os.getcwd(),
        }
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            status = self._send(json.dumps(request), output.fileno(), errors.fileno())
            with open(status, "rb", buffering=0) as states:
                returned = _status(states, arguments, timeout_s)
            return subprocess.CompletedProcess(
                ["locktop", *arguments], returned, _text(output), _text(errors)
            )

    def _send(self, request: str, output: int, errors: int) -> int:
        """Send a request; return the pipe from which to read the id and the exit status."""
        read_end, write_end = os.pipe()
        try:
            with self._lock:
                self._socket = self._socket or _start()
                socket.send_fds(self._socket, [request.encode()], [output, errors, write_end])
        finally:
            os.close(write_end)
        return read_end


def _start() -> socket.socket:
    """Start the server; it ends with the tests. Return the socket for requests."""
    mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its:
        server = subprocess.Popen(
            [sys.executable, str(_SERVER), str(its.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[its.fileno()],
        )

    def stop() -> None:
        mine.close()  # the server kills what goes on, and ends
        server.wait()

    atexit.register(stop)
    return mine


def _status(states: BinaryIO, arguments: Sequence[str], timeout_s: float) -> int:
    """Wait for the end of a run; return its exit status. A run that takes too long is killed."""
    deadline = time.monotonic() + timeout_s
    lines = b""
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(states, selectors.EVENT_READ)
            while lines.count(b"\n") < 2:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise subprocess.TimeoutExpired(["locktop", *arguments], timeout_s)
                piece = states.read(64)
                assert piece, "the server has ended"
                lines += piece
    except BaseException:
        pid = lines.partition(b"\n")[0]
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        raise
    return int(lines.split()[1])


def _text(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode()
