"""Real servers: each on a port or a socket of its own, ended with SIGTERM."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from locktop.collector.sources.launch import preload_environment
from support.targets import PATIENCE_S, Target, remove_file_of, start_time
from support.watched import Need

_LOAD_S = 300.0


@contextmanager
def running(
    command: Sequence[str | Path], level: str | None, answers: Callable[[], bool]
) -> Iterator[Target]:
    """Run a server until the block ends, with the library if there is a ``level``.

    The block begins when ``answers`` returns true. The server must end with status 0 at SIGTERM.
    """
    with Target(command, preload_environment(level) if level else {}) as server:
        started = start_time(server.pid)
        try:
            while not answers():
                assert server.process.poll() is None, "the server did not start"
            yield server
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(PATIENCE_S) == 0
            assert not os.path.exists(f"/dev/shm/locktop-{server.pid}-{started}")
        finally:
            server.stop()
            remove_file_of(server.pid, started)


def free_port() -> int:
    """Return a port on which no process listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def listens(port: int) -> bool:
    """Return whether a process accepts connections on a port."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


class MariaDB:
    """A data directory of MariaDB, and the commands for the server that works on it."""

    def __init__(self, directory: Path, need: Need) -> None:
        self._need = need
        self._socket = directory / "socket"
        data = directory / "data"
        directory.mkdir(exist_ok=True)
        install = [str(need("mariadb-install-db", "mariadb-server")), "--no-defaults"]
        install += [f"--datadir={data}", "--user=root", "--skip-test-db"]
        install += ["--auth-root-authentication-method=normal"]
        if not (data / "mysql").exists():
            subprocess.run(install, check=True, capture_output=True, timeout=_LOAD_S)
        self.command = [str(need("mariadbd", "mariadb-server")), "--no-defaults"]
        self.command += [f"--datadir={data}", "--user=root", "--skip-networking"]
        self.command += [f"--socket={self._socket}", f"--log-error={directory / 'log'}"]

    def ask(self, query: str) -> list[list[str]]:
        """Return the rows of the answer to a query."""
        command = [*self._client(), "-e", query]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_LOAD_S)
        return [line.split("\t") for line in done.stdout.splitlines()]

    def session(self) -> Target:
        """Start a client that reads queries and writes the rows of each answer at once."""
        return Target([*self._client(), "--unbuffered"])

    def _client(self) -> list[str]:
        command = [str(self._need("mariadb", "mariadb-client")), "--no-defaults", "-u", "root"]
        return [*command, "-BN", f"--socket={self._socket}"]

    def answers(self) -> bool:
        """Return whether the server accepts queries."""
        try:
            return self.ask("select 1") == [["1"]]
        except subprocess.CalledProcessError:
            return False

    def sysbench(self, *arguments: str) -> str:
        """Run oltp_read_write on two tables; return its output."""
        command = self.sysbench_command(*arguments)
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_LOAD_S)
        return done.stdout

    def sysbench_command(self, *arguments: str) -> list[str]:
        """Return the command that runs oltp_read_write on two tables."""
        command = [str(self._need("sysbench")), "oltp_read_write", "--db-driver=mysql"]
        command += [f"--mysql-socket={self._socket}", "--mysql-user=root", "--tables=2"]
        return [*command, *arguments]
