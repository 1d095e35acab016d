"""A process that has imported all of locktop, and forks for each run of the command.

The imports take most of the CPU time of a short command. A fork of this server is a real process
too: it has its own id, output, environment and exit status.

    python tool_server.py DESCRIPTOR

DESCRIPTOR is a socket of `tool_client.py`.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import selectors
import signal
import socket
import sys
from typing import Any

from locktop import collector, tui
from locktop.tui import cli

#: The longest request: arguments and environment.
MAX_REQUEST = 1 << 18
#: The descriptors of a request: output, errors, and the pipe for the id and the status.
FILES = 3
#: More than the server and a fork ever open.
_MAX_DESCRIPTOR = 1024


class Server:
    """Forks at each request, and writes the id and the exit status of each fork to its pipe."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._selector = selectors.DefaultSelector()
        self._selector.register(connection, selectors.EVENT_READ)

    def serve(self) -> list[str] | None:
        """Return the arguments in each fork. Return None in the server, after the last run."""
        while self._selector.get_map():
            for key, _ in self._selector.select():
                if key.fileobj is not self._connection:
                    self._end(key)
                elif (arguments := self._accept()) is not None:
                    return arguments
        return None

    def _accept(self) -> list[str] | None:
        """Fork for a request. Return its arguments in the fork, and None in the server."""
        packed, files, _, _ = socket.recv_fds(self._connection, MAX_REQUEST, FILES)
        if not packed:  # the tests have ended
            self._selector.unregister(self._connection)
            self._kill_all()
            return None
        output, errors, status = files
        pid = os.fork()
        if pid == 0:
            self._selector.close()
            self._connection.close()
            return _prepare(json.loads(packed), output, errors)
        os.close(output)
        os.close(errors)
        if not _write(status, pid):
            os.kill(pid, signal.SIGKILL)
        self._selector.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, status))
        return None

    def _kill_all(self) -> None:
        """Kill the forks that go on: one may wait for the end of the tests, which wait for it."""
        for key in self._selector.get_map().values():
            pid, _ = key.data
            os.kill(pid, signal.SIGKILL)

    def _end(self, key: selectors.SelectorKey) -> None:
        """Write the exit status of a fork that has ended, as `subprocess` would give it."""
        self._selector.unregister(key.fileobj)
        os.close(key.fd)
        pid, status = key.data
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        _write(status, code)
        os.close(status)


def _write(status: int, number: int) -> bool:
    """Return whether the test still waits for it."""
    try:
        os.write(status, f"{number}\n".encode())
    except BrokenPipeError:
        return False
    return True


def _prepare(request: dict[str, Any], output: int, errors: int) -> list[str]:
    """Make this fork look like a new process; return its arguments."""
    os.dup2(output, 1)
    os.dup2(errors, 2)
    os.closerange(3, _MAX_DESCRIPTOR)
    os.chdir(request["directory"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = ["locktop", *request["arguments"]]
    arguments: list[str] = request["arguments"]
    return arguments


def _import_all() -> None:
    """Import every module of locktop, and exclude what they made from the forks' collections."""
    for package in (collector, tui):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith(".__main__"):
                importlib.import_module(module.name)
    gc.collect()
    gc.freeze()


class _QuickEnd:
    """Ends a fork after the exit handlers of Python, and before Python takes the modules apart.

    A fork that takes modules apart copies all their memory. A short command spent most of its CPU
    time there. Tests of `tool.run_alone()` have the whole end.
    """

    def __init__(self) -> None:
        self.status: int | None = None
        atexit.register(self._end)  # the first to register is the last to run

    def _end(self) -> None:
        if self.status is not None:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            os._exit(self.status)


def _main() -> int:
    quick_end = _QuickEnd()
    _import_all()
    arguments = Server(socket.socket(fileno=int(sys.argv[1]))).serve()
    if arguments is None:
        return 0
    try:
        quick_end.status = cli.main(arguments)
    except SystemExit as wrong_use:
        quick_end.status = int(wrong_use.code or 0)
    return quick_end.status


if __name__ == "__main__":
    sys.exit(_main())
