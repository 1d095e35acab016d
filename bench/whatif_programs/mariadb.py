"""MariaDB of Debian, with transactions of sysbench. A connection has a thread."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from support import servers

from whatif_programs.base import RealChange, RealProgram, Run, Setting, need, on_cpus, process


class MariaDBServer(RealProgram):
    """A server, and a client with as many connections as the setting says."""

    name = "mariadb"
    unit = "queries"
    recorded_s = 1.0
    base: ClassVar[Setting] = {"connections": 8, "cpus": 0}
    changes: ClassVar[Sequence[RealChange]] = (
        RealChange("1 CPU", "--cpus", "", "1", {"cpus": 1}),
        RealChange("4 threads", "--threads", "mariadbd", "4", {"connections": 4}),
        RealChange("2 threads", "--threads", "mariadbd", "2", {"connections": 2}),
    )
    _LONG_S, _ROWS = 120, "--table-size=10000"

    def prepare(self, cache: Path) -> None:
        for command, package in (("mariadbd", "mariadb-server"), ("sysbench", "sysbench")):
            need(command, package)
        self._database = servers.MariaDB(cache / "mariadb", _needed)
        # The disk stays out of the figures.
        self._server = [*self._database.command, "--innodb-flush-log-at-trx-commit=0"]
        with self._served({}):
            self._database.ask("create database if not exists sbtest")
            if not self._database.ask("show tables in sbtest"):
                self._database.sysbench(self._ROWS, "prepare")

    @contextmanager
    def _served(self, environment: Mapping[str, str], cpus: int = 0) -> Iterator[int]:
        with process(on_cpus(self._server, cpus), environment) as server:
            while not self._database.answers():
                assert server.poll() is None, "mariadbd did not start"
            yield server.pid

    @contextmanager
    def running(self, setting: Setting, environment: Mapping[str, str]) -> Iterator[Run]:
        options = [self._ROWS, f"--threads={setting['connections']}", f"--time={self._LONG_S}"]
        with (
            self._served(environment, setting["cpus"]) as pid,
            process(self._database.sysbench_command(*options, "run"), {}),
        ):
            yield Run(pid, lambda: _queries(self._database))


def _needed(command: str, package: str = "") -> Path:
    return Path(need(command, package or command))


def _queries(database: servers.MariaDB) -> float:
    """Return the queries that the server counted."""
    return float(database.ask("show global status like 'Questions'")[0][1])
