"""SQLite of Debian, in a C program whose threads share connections (sqlite_readers.c)."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from whatif_programs.base import RealChange, RealProgram, Run, Setting, counting, need, process

_SOURCE = Path(__file__).with_name("sqlite_readers.c")


class SQLite(RealProgram):
    """All threads share one connection, and wait for the disk while they have its mutex."""

    name = "sqlite"
    unit = "queries"
    base: ClassVar[Setting] = {"threads": 8, "connections": 1, "rows": 4}
    changes: ClassVar[Sequence[RealChange]] = (
        RealChange("4 connections", "--split", "sqlite", "4", {"connections": 4}),
        RealChange("half the rows", "--hold", "sqlite", "0.5", {"rows": 2}),
        RealChange("4 threads", "--threads", "sqlite_readers", "4", {"threads": 4}),
    )
    _READ_US = 250

    def prepare(self, cache: Path) -> None:
        need("gcc", "gcc")
        if not Path("/usr/include/sqlite3.h").exists():
            raise SystemExit("sqlite3.h is missing: apt-get install libsqlite3-dev")
        self._directory = cache / "sqlite"
        self._directory.mkdir(exist_ok=True)
        self._program = self._directory / "sqlite_readers"
        command = ["gcc", "-O2", "-g", "-pthread", "-D_GNU_SOURCE", _SOURCE, "-o", self._program]
        subprocess.run([*command, "-lsqlite3"], check=True)

    @contextmanager
    def running(self, setting: Setting, environment: Mapping[str, str]) -> Iterator[Run]:
        numbers = [str(setting[name]) for name in ("threads", "connections", "rows")]
        data = self._directory / "data"
        command = [self._program, data, *numbers, str(self._READ_US)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with process(command, environment, **pipes) as started:
            assert started.stdout is not None
            started.stdout.readline()
            yield Run(started.pid, counting(started))
