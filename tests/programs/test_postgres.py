"""postgres: clients wait for locks of tables, which only its own detector of deadlocks ends."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from support import requirements, tool
from support.eventually import until
from support.rights import NOBODY

pytestmark = pytest.mark.big
_BINARIES = Path("/usr/lib/postgresql")
#: Far longer than the test: postgres would end the deadlock by itself.
_SETTINGS = "-c deadlock_timeout=1h -c listen_addresses= -k {directory}"
_WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


class Server:
    """A server of an ordinary user in a directory of its own."""

    def __init__(self, binaries: Path, directory: Path, user: Sequence[str]) -> None:
        self._binaries = binaries
        self._directory = directory
        self._user = user

    def run(self, program: str, *arguments: str) -> str:
        """Run a program of postgres to its end; return its output."""
        command = [*self._user, str(self._binaries / program), *arguments]
        return subprocess.run(
            command, check=True, capture_output=True, text=True, cwd=self._directory
        ).stdout

    def query(self, text: str) -> list[str]:
        """Return the lines of the answer to a query."""
        return self.run("psql", *self._client(), "-At", "-c", text).split()

    def client(self) -> subprocess.Popen[str]:
        """Start a client that takes queries from its input."""
        command = [*self._user, str(self._binaries / "psql"), *self._client(), "-At", "-q"]
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=self._directory,
        )

    def _client(self) -> tuple[str, ...]:
        return "-X", "-h", str(self._directory), "-U", "locktop", "postgres"


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that runs."""
    versions = sorted(_BINARIES.glob("*/bin/initdb"))
    if not versions:
        requirements.missing("initdb", "postgresql", optional=True)
    user: tuple[str, ...] = ()
    directory = Path(tempfile.mkdtemp())
    if not os.geteuid():
        setpriv = str(requirements.command("setpriv", "util-linux"))
        user = (setpriv, f"--reuid={NOBODY}", "--clear-groups")
        os.chown(directory, NOBODY, -1)
    data = str(directory / "data")
    server = Server(versions[-1].parent, directory, user)
    server.run("initdb", "-D", data, "-U", "locktop", "-A", "trust", "--no-sync")
    settings = _SETTINGS.format(directory=directory)
    log = str(directory / "log")
    server.run("pg_ctl", "-D", data, "-l", log, "-o", settings, "-w", "start")
    try:
        yield server
    finally:
        server.run("pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
        shutil.rmtree(directory)


def test_clients_that_wait_for_locks_of_tables_are_no_certain_deadlock(server: Server) -> None:
    """Two clients cross on two tables: their servers wait for a signal of the detector."""
    server.query("CREATE TABLE a (); CREATE TABLE b ()")
    with ExitStack() as stack:
        clients = [stack.enter_context(server.client()) for _ in range(2)]
        for client in clients:
            stack.callback(client.kill)
        for client, table in zip(clients, "ab", strict=True):
            assert client.stdin is not None
            assert client.stdout is not None
            client.stdin.write(f"BEGIN; LOCK TABLE {table}; SELECT 'has it';\n")
            client.stdin.flush()
            assert client.stdout.readline() == "has it\n"
        for client, table in zip(clients, "ba", strict=True):
            assert client.stdin is not None
            client.stdin.write(f"LOCK TABLE {table};\n")
            client.stdin.flush()
        until(lambda: len(server.query(_WAITING)) == 2, "two clients wait")
        pids = [*server.query(_WAITING), *(str(client.pid) for client in clients)]
        done = tool.run("why", *pids)
    assert done.returncode in (0, 3), done.stdout
    assert "nobody can go on" not in done.stdout.replace("perhaps nobody can go on", "")
