"""A child process for work that foreign data could make large, with bounded memory and time.

Both sides are here: `BoundedWorker` in our process, `serve()` in the child. A message is its
length in four bytes, little-endian, and then its bytes. Each request has one answer. The child
ends when its standard input ends: with our process, however that ends.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

_LENGTH = struct.Struct("<I")
_READ_SIZE = 1 << 20
#: Runs the module argv[2]. argv[1] is the directory of our package. The single file adds this
#: directory to sys.path itself, so a new interpreter does not have it there.
_RUN = """
import runpy, site, sys
_, directory, module = sys.argv
if directory not in sys.path:
    site.addsitedir(directory)
runpy.run_module(module, run_name="__main__")
"""


class WorkerError(OSError):
    """The worker cannot be started, or has ended, or its answer is too long."""


class BoundedWorker:
    """Our side of one worker. The process starts with the first request, and again after its end.

    Args:
        module: The module that calls `serve()` when it is run.
        max_answer: Bytes of the longest answer.
        max_starts: How often the process is started; None for any number.
    """

    def __init__(self, module: str, *, max_answer: int, max_starts: int | None = None) -> None:
        self._module = module
        self._max_answer = max_answer
        self._starts_left = max_starts
        self._process: subprocess.Popen[bytes] | None = None
        self._buffer = b""
        self._one_call = threading.Lock()

    @property
    def pid(self) -> int | None:
        """The process id of the worker; None if none is running."""
        return self._process.pid if self._process is not None else None

    def call(self, request: bytes, timeout_s: float) -> bytes:
        """Send a request and wait for its answer; other threads wait for their turn.

        Raises:
            WorkerError: There is no answer in time. The process was ended.
        """
        with self._one_call:
            self.send(request)
            answer = self.receive(timeout_s)
            if answer is None:
                self.close()
                raise WorkerError("no answer in time")
            return answer

    def send(self, request: bytes) -> None:
        """Send a request. The answer to the request before was received.

        Raises:
            WorkerError: The process cannot be started, or has ended.
        """
        try:
            if self._process is None:
                self._process = self._start()
            assert self._process.stdin is not None
            self._process.stdin.write(_message(request))
        except OSError as error:
            self.close()
            raise WorkerError(str(error)) from None

    def receive(self, timeout_s: float) -> bytes | None:
        """Return the answer; None if it does not come within ``timeout_s``.

        Raises:
            WorkerError: The process has ended, or its answer is too long.
        """
        if self._process is None:
            raise WorkerError("the worker has ended")
        assert self._process.stdout is not None
        output = self._process.stdout.fileno()
        poll = select.poll()
        poll.register(output, select.POLLIN)
        deadline = time.monotonic() + timeout_s
        while (answer := self._take_buffered()) is None:
            if not poll.poll(1000 * max(0.0, deadline - time.monotonic())):
                return None
            piece = os.read(output, _READ_SIZE)
            self._buffer += piece
            if not piece or len(self._buffer) > _LENGTH.size + self._max_answer:
                self.close()
                raise WorkerError("the worker has ended, or its answer is too long")
        return answer

    def close(self) -> None:
        """End the process; a later request starts it again."""
        process, self._process, self._buffer = self._process, None, b""
        if process is None:
            return
        process.kill()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                assert pipe is not None
                pipe.close()
        process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        if self._starts_left is not None:
            if not self._starts_left:
                raise WorkerError("the worker has ended too often")
            self._starts_left -= 1
        return subprocess.Popen(
            # -P: nothing is imported from the directory where we happen to be
            [sys.executable, "-P", "-c", _RUN, *self._where()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,  # the signals of the terminal are for us alone
        )

    def _where(self) -> tuple[str, str]:
        import locktop

        assert locktop.__file__ is not None
        return str(Path(locktop.__file__).parents[1]), self._module

    def _take_buffered(self) -> bytes | None:
        if len(self._buffer) < _LENGTH.size:
            return None
        end = _LENGTH.size + _LENGTH.unpack_from(self._buffer)[0]
        if len(self._buffer) < end:
            return None
        answer, self._buffer = self._buffer[_LENGTH.size : end], self._buffer[end:]
        return answer


class SharedWorker(BoundedWorker):
    """A worker that users call one after the other; end() ends its process."""

    def __init__(self, module: str, *, max_answer: int) -> None:
        super().__init__(module, max_answer=max_answer)
        self._is_due = False

    def send(self, request: bytes) -> None:
        """Send a request, see BoundedWorker."""
        self._is_due = True
        super().send(request)

    def receive(self, timeout_s: float) -> bytes | None:
        """Return the answer, see BoundedWorker."""
        answer = super().receive(timeout_s)
        self._is_due = self._is_due and answer is None
        return answer

    def close(self) -> None:
        """Keep the process for the next user, unless an answer is due that is for this one."""
        if self._is_due:
            self.end()

    def end(self) -> None:
        """End the process."""
        self._is_due = False
        super().close()


def serve(answer: Callable[[bytes], bytes], *, max_memory: int, max_cpu_s: int) -> None:
    """Answer requests until standard input ends: the child's side.

    Args:
        answer: Returns the answer to a request.
        max_memory: Bytes of address space of this process.
        max_cpu_s: Processor time for one answer: a busy machine does not use it up.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit(resource.RLIMIT_AS, max_memory)
    output = sys.stdout.buffer
    while (request := _read_message(sys.stdin.buffer)) is not None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        _limit(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + max_cpu_s)
        output.write(_message(answer(request)))
        output.flush()


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (value if hard < 0 else min(value, hard), hard))


def _message(data: bytes) -> bytes:
    return _LENGTH.pack(len(data)) + data


def _read_message(stream: BinaryIO) -> bytes | None:
    head = stream.read(_LENGTH.size)
    return stream.read(_LENGTH.unpack(head)[0]) if len(head) == _LENGTH.size else None
