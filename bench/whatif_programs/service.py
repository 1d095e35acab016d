"""A Python service: threads that answer HTTP requests from SQLite (python_service.py)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from whatif_programs.base import RealChange, RealProgram, Run, Setting, counting, process

_HERE = Path(__file__).parent


class Service(RealProgram):
    """The unchanged service has one database connection for all threads."""

    name = "service"
    unit = "requests"
    base: ClassVar[Setting] = {"threads": 8, "connections": 1, "rows": 4000}
    changes: ClassVar[Sequence[RealChange]] = (
        RealChange("4 connections", "--split", "libsqlite3", "4", {"connections": 4}),
        RealChange("half the rows", "--hold", "libsqlite3", "0.5", {"rows": 2000}),
        RealChange("4 threads", "--threads", "python", "4", {"threads": 4}),
        RealChange("16 threads", "--threads", "python", "16", {"threads": 16}),
    )
    _CLIENTS = 24

    def prepare(self, cache: Path) -> None:
        """Nothing is needed beside Python."""

    @contextmanager
    def running(self, setting: Setting, environment: Mapping[str, str]) -> Iterator[Run]:
        numbers = [str(setting[name]) for name in ("threads", "connections", "rows")]
        command = [sys.executable, _HERE / "python_service.py", *numbers]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with process(command, environment, **pipes) as server:
            assert server.stdout is not None
            port = server.stdout.readline().split()[1]
            load = [sys.executable, _HERE / "http_load.py", port, str(self._CLIENTS)]
            with process(load, {}):
                yield Run(server.pid, counting(server))
