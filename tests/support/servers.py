"""Real servers: started on a port or a socket of their own, ended in good order."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from locktop.collector.launch import preload_environment
from support.targets import PATIENCE_S, Target, remove_file_of, start_time


@contextmanager
def running(
    command: Sequence[str | Path], level: str | None, answers: Callable[[], bool]
) -> Iterator[Target]:
    """Run a server until the block ends, with the library if there is a level; it is there when it
    ``answers``, and must end with status 0 when told to."""
    with Target(command, preload_environment(level) if level else {}) as server:
        started = start_time(server.pid)
        try:
            while not answers():
                assert server.process.poll() is None, "it did not start"
            yield server
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(PATIENCE_S) == 0
            assert not os.path.exists(f"/dev/shm/locktop-{server.pid}-{started}")
        finally:
            server.stop()
            remove_file_of(server.pid, started)


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def listens(port: int) -> bool:
    """Tell whether somebody takes connections on a port."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
