"""LLVM's demanglers, kept from unfolding a name beyond all memory.

A mangled name may refer back to parts of itself, so 300 characters of a forged one unfold to more
than any memory holds; and each level of a nested one takes stack. Those that could become large or
deep are read by a process of their own, which has little memory and little time; it is started when
it is first needed and ends with us.
"""

from __future__ import annotations

import atexit
import os
import re
import resource
import select
import subprocess
import sys
import threading
import time

_REFERENCE = re.compile(r"[STB][0-9A-Za-z]*_")
#: Characters that a name may unfold to where each reference doubles what is before it.
_SAFE = 16 << 20
#: Characters of a name that fits a stack of 512 KB, however it is nested.
_SHALLOW = 1000
_MAX_MEMORY = 160 << 20
_MAX_CPU_S = 2  # for one name; of processor time, which a busy machine does not use up
_PATIENCE_S = 60.0
_LONGEST = 1 << 17  # characters of a readable name
_MAX_STARTS = 8  # a process for each forged name would be work, too


def readable(symbol: str) -> str:
    """Return the whole readable form of a mangled name, "" if there is none."""
    references = len(_REFERENCE.findall(symbol))
    if len(symbol) <= _SHALLOW and len(symbol) << min(references, 64) <= _SAFE:
        return _demangled(symbol)
    return _apart.ask(symbol)


def _demangled(symbol: str) -> str:
    import pycxxfilt

    is_rust = symbol.startswith("_R")
    try:
        name = pycxxfilt.rust_demangle(symbol) if is_rust else pycxxfilt.itanium_demangle(symbol)
    except ValueError:
        return ""
    return name if name and len(name) <= _LONGEST else ""


class _Apart:
    """The process; who asks waits for the one before."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = 0
        self._one_at_a_time = threading.Lock()

    def ask(self, symbol: str) -> str:
        """Return the readable form, "" if it cannot be had."""
        if "\n" in symbol:
            return ""
        with self._one_at_a_time:
            try:
                answer = self._answer(self._started(), symbol.encode() + b"\n")
            except (OSError, UnicodeError):
                answer = b""
            if not answer.endswith(b"\n"):
                self.end()
            return answer.decode("utf-8", "replace").rstrip("\n")

    def end(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            if self._starts >= _MAX_STARTS:
                raise OSError("too many forged names")
            self._starts += 1
            self._process = subprocess.Popen(
                [sys.executable, "-m", "locktop.collector.symbols.demangle_worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        return self._process

    def _answer(self, process: subprocess.Popen[bytes], question: bytes) -> bytes:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(question)
        process.stdin.flush()
        answer, until = b"", time.monotonic() + _PATIENCE_S
        while not answer.endswith(b"\n"):
            left = max(0.0, until - time.monotonic())
            if not select.select([process.stdout], [], [], left)[0]:
                break
            part = os.read(process.stdout.fileno(), 1 << 16)
            if not part:
                break
            answer += part
        return answer


_apart = _Apart()
atexit.register(_apart.end)


def _serve() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY, _MAX_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in sys.stdin.buffer:
        until = int(time.process_time()) + _MAX_CPU_S
        resource.setrlimit(resource.RLIMIT_CPU, (until, resource.RLIM_INFINITY))
        name = _demangled(line.decode("utf-8", "replace").rstrip("\n"))
        sys.stdout.buffer.write(name.replace("\n", " ").encode("utf-8", "replace") + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    _serve()
