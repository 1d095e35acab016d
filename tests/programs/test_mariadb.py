"""MariaDB under sysbench: mutexes, conditions, rwlocks of libc, and futexes of its own."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from support import servers, tool, watched
from support.watched import Need

pytestmark = pytest.mark.big

CLIENTS, TABLES, ROWS, TRANSACTIONS = 16, 2, 1000, 1000


class Server:
    """One data directory, and how to talk to the server that works on it."""

    def __init__(self, directory: Path, need: Need) -> None:
        self._need = need
        self.socket = directory / "socket"
        data = directory / "data"
        install = [
            need("mariadb-install-db", "mariadb-server"),
            "--no-defaults",
            f"--datadir={data}",
        ]
        install += ["--user=root", "--auth-root-authentication-method=normal", "--skip-test-db"]
        subprocess.run(install, check=True, capture_output=True, timeout=300)
        self.command = [need("mariadbd", "mariadb-server"), "--no-defaults", f"--datadir={data}"]
        self.command += ["--user=root", f"--socket={self.socket}", "--skip-networking"]
        self.command += [f"--log-error={directory / 'log'}", "--silent-startup"]

    def ask(self, query: str) -> list[list[str]]:
        """Return the rows of an answer."""
        command = [self._need("mariadb", "mariadb-client"), "--no-defaults", "-u", "root", "-BN"]
        command += [f"--socket={self.socket}", "-e", query]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        return [line.split("\t") for line in done.stdout.splitlines()]

    def answers(self) -> bool:
        """Whether it takes queries."""
        try:
            return self.ask("select 1") == [["1"]]
        except subprocess.CalledProcessError:
            return False

    def sysbench(self, step: str) -> str:
        """Run a step of the load."""
        command = [self._need("sysbench"), "oltp_read_write", "--db-driver=mysql"]
        command += [f"--mysql-socket={self.socket}", "--mysql-user=root", f"--threads={CLIENTS}"]
        command += [f"--tables={TABLES}", f"--table-size={ROWS}", f"--events={TRANSACTIONS}"]
        done = subprocess.run(
            [*command, "--time=0", step], capture_output=True, text=True, timeout=300, check=True
        )
        return done.stdout


def figure(output: str, name: str) -> int:
    found = re.search(rf"{name}: +(\d+)", output)
    assert found, output
    return int(found[1])


@pytest.mark.parametrize("level", [None, "contended", "all"])
def test_each_query_is_answered(level: str | None, need: Need, tmp_path: Path) -> None:
    server = Server(tmp_path, need)
    with servers.running(server.command, level, server.answers) as process:
        server.ask("create database sbtest")
        server.sysbench("prepare")
        before = {name: int(count) for name, count in server.ask("show global status like 'Com_%'")
                  if count.isdigit()}  # fmt: skip
        said = server.sysbench("run")
        after = dict(server.ask("show global status like 'Com_%'"))
        assert figure(said, "transactions") == TRANSACTIONS
        assert int(after["Com_commit"]) - before["Com_commit"] == TRANSACTIONS
        # Those refused because of a deadlock between transactions were answered too.
        sent = figure(said, "queries") + figure(said, "ignored errors")
        answered = int(after["Com_stmt_execute"]) - before["Com_stmt_execute"]
        assert answered == sent
        for table in range(1, TABLES + 1):
            assert server.ask(f"select count(*) from sbtest.sbtest{table}") == [[str(ROWS)]]
            ((_, _, _, verdict),) = server.ask(f"check table sbtest.sbtest{table} extended")
            assert verdict == "OK"
        if level is None:
            return
        document = watched.checked(tool.snapshot(process.pid))
    assert len(document["threads"]) > 5
    assert watched.total(document, "acquisitions", "mutex") > TRANSACTIONS
    assert watched.total(document, "wait_s", "futex") > 0, "InnoDB's own"
    assert watched.total(document, "wait_s", "cond") > 0
