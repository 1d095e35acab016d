"""The target programs of tests/targets: found by name, compiled once, started, always ended."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from support import requirements

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ROOT / "tests" / "targets"
INCLUDE = ROOT / "native" / "include"
CFLAGS = ["-D_GNU_SOURCE", "-pthread", "-Wall", "-Wextra", "-Werror"]
#: Optimised, yet with every function in its stack, and with line numbers.
CFLAGS += ["-O1", "-g", "-fno-omit-frame-pointer", "-fno-inline-functions-called-once"]

_COMPILERS = {
    ".c": [os.environ.get("CC", "cc"), "-std=gnu11", *CFLAGS],
    ".cc": [os.environ.get("CXX", "c++"), "-std=gnu++20", *CFLAGS],
    ".rs": ["rustc", "--edition", "2021", "-g"],
}

#: Of a file's name, which has 255 bytes at most.
_MAX_FLAG_WORDS = 100

#: A target is a file with one of these suffixes; ``target.h`` and other headers are none.
SUFFIXES = {*_COMPILERS, ".py", ".java", ".js"}

#: A guard against programs that hang. An answer ends each wait earlier. Beside twenty busy
#: processes one sched_yield() takes some 20 ms, and a target may make thousands.
PATIENCE_S = 300.0


class TargetNameError(LookupError):
    """No source file in tests/targets has the name, or several have it."""


def index_of(root: Path) -> dict[str, list[Path]]:
    """Return the source files of all topics below ``root`` by name without suffix."""
    index: dict[str, list[Path]] = {}
    for path in sorted(root.glob("*/*")):
        if path.suffix in SUFFIXES:
            index.setdefault(path.stem, []).append(path)
    return index


def source_of(name: str, root: Path = TARGETS) -> Path:
    """Return the source file of the target ``name``, whatever topic the file lies in.

    Raises:
        TargetNameError: no file has the name, or files of several topics have it.
    """
    index = index_of(root)
    paths_of_name = index.get(name, [])
    if not paths_of_name:
        similar = difflib.get_close_matches(name, index, cutoff=0.5)
        raise TargetNameError(f"no target {name!r} in {root}; similar: {', '.join(similar) or '-'}")
    if len(paths_of_name) > 1:
        paths = ", ".join(str(path.relative_to(root)) for path in paths_of_name)
        raise TargetNameError(f"target {name!r} is ambiguous: {paths}")
    return paths_of_name[0]


class Compiler:
    """Compiles each target at its first use, and keeps it in ``kept`` for later runs.

    Later runs compile a target again if the compiler, the flags, the source or any header changed.
    """

    def __init__(self, directory: Path, kept: Path | None = None) -> None:
        self.directory = directory
        self._kept = kept

    def program(self, name: str, *flags: str) -> Path:
        """Return the executable of a C, C++ or Rust target, built with extra ``flags``."""
        source = source_of(name)
        compiler = _COMPILERS[source.suffix]
        command = [str(requirements.command(compiler[0])), *compiler[1:], str(source), *flags]
        directory = self._directory_of(command, source, flags)
        flag_words = "".join(flags).replace("/", "_")
        if len(flag_words) > _MAX_FLAG_WORDS:
            flag_words = hashlib.sha256(flag_words.encode()).hexdigest()[:16]
        output = directory / f"{name}{flag_words}"
        if not output.exists():
            directory.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=directory) as folder:
                path = Path(folder) / output.name
                subprocess.run([*command, "-o", str(path)], check=True)
                path.rename(output)  # another run may build the same program now
        return output

    def _directory_of(self, command: Sequence[str], source: Path, flags: Sequence[str]) -> Path:
        """Return where a program lies; one that is built from other files is not kept."""
        if self._kept is None or any("/" in flag for flag in flags):
            return self.directory
        compiler = os.stat(command[0])
        key = hashlib.sha256(repr((command, compiler.st_size, compiler.st_mtime_ns)).encode())
        key.update(source.read_bytes() + _headers())
        return self._kept / key.hexdigest()[:16]


@cache
def _headers() -> bytes:
    """Return the text of all headers that a target may include."""
    paths = (path for root in (TARGETS, INCLUDE) for path in sorted(root.rglob("*.h")))
    return b"".join(path.read_bytes() for path in paths)


class Target:
    """A running program that writes lines to stdout and reads lines from stdin."""

    def __init__(
        self, command: Sequence[str | Path], environment: Mapping[str, str] | None = None
    ) -> None:
        self.process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **(environment or {})},
        )
        self.has_library = "LD_PRELOAD" in (environment or {})
        self._buffer = b""
        self._ended = False

    @property
    def pid(self) -> int:
        return self.process.pid

    def __enter__(self) -> Target:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def line(self, patience_s: float = PATIENCE_S) -> str:
        """Return the next line of the program, "" after its last line."""
        deadline = time.monotonic() + patience_s
        while b"\n" not in self._buffer and not self._ended:
            self._fill(deadline)
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode()

    def _fill(self, deadline: float) -> None:
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            if not selector.select(max(0.0, deadline - time.monotonic())):
                raise TimeoutError(f"{self.process.args!r} said {self._buffer!r} and no more")
        piece = os.read(self.process.stdout.fileno(), 1 << 16)
        self._buffer += piece
        self._ended = not piece

    def has_output(self) -> bool:
        """Return whether the next line, or the end of the output, can be read without a wait."""
        with selectors.DefaultSelector() as selector:
            assert self.process.stdout is not None
            selector.register(self.process.stdout, selectors.EVENT_READ)
            return bool(self._buffer or selector.select(0))

    def expect(self, line: str) -> None:
        """Read a line, and check that it is ``line``."""
        said = self.line()
        assert said == line, f"{said!r} instead of {line!r}"

    def truth(self) -> dict[str, Any]:
        """Return the next line of the program, which is a JSON object."""
        said: dict[str, Any] = json.loads(self.line())
        return said

    def go_on(self, line: str = "") -> None:
        """Write a line to the program."""
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def finish(self) -> tuple[int, list[str]]:
        """Close stdin; return the exit status and the remaining lines."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        lines = []
        while line := self.line():
            lines.append(line)
        return self.process.wait(PATIENCE_S), lines

    def kill(self) -> None:
        """Kill the program with SIGKILL, and wait for its end."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE_S)

    def stop(self) -> None:
        """End the program in any state, and close its pipes."""
        if self.process.poll() is None:
            self.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    pass  # the program was killed before it read a line


#: Starts a program of tests/targets by its name.
StartTarget = Callable[..., Target]


def start_time(pid: int) -> int:
    """Return the start of a process in clock ticks since boot; unique together with the pid."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def remove_file_of(pid: int, started: int) -> None:
    """Remove the shared memory that a killed process left in /dev/shm.

    ``started`` is its start time, since another process may have the pid by now.
    """
    for path in Path("/dev/shm").glob(f"locktop-{pid}-{started}*"):
        path.unlink(missing_ok=True)
