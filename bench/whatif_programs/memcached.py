"""memcached, built from Debian's source: workers that answer connections, and locks of items."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from support import servers
from support.targets import Compiler

from whatif_programs.base import (
    RealChange,
    RealProgram,
    Run,
    Setting,
    need,
    on_cpus,
    process,
)
from whatif_programs.debian_source import source
from whatif_programs.patching import replace_in


class Memcached(RealProgram):
    """The unchanged program has one lock for all items; the changed one has 1024."""

    name = "memcached"
    unit = "requests"
    recorded_s = 2.0
    base: ClassVar[Setting] = {"threads": 4, "power": 0, "cpus": 0}
    changes: ClassVar[Sequence[RealChange]] = (
        RealChange("1024 locks", "--split", "memcached_thread_init", "1024", {"power": 10}),
        RealChange("1 CPU", "--cpus", "", "1", {"cpus": 1}),
        RealChange("2 threads", "--threads", "mc-worker", "2", {"threads": 2}),
    )
    _CONNECTIONS, _BATCH, _LONG_S, _PAUSE_US = 16, 4, 120, 2000

    def prepare(self, cache: Path) -> None:
        need("make", "make")
        if not Path("/usr/include/event.h").exists():
            raise SystemExit("event.h is missing: apt-get install libevent-dev")
        self._directory = cache / "memcached"
        self._directory.mkdir(exist_ok=True)
        if not self._program(10).exists():
            self._build(source("memcached", cache))
        self._load = Compiler(self._directory).program("memcached_load")

    def _program(self, power: int) -> Path:
        return self._directory / f"memcached-{power}"

    def _build(self, code: Path) -> None:
        replace_in(
            code / "thread.c", r"(item_lock_count = hashsize)", r"power = ITEM_POWER;\n    \1"
        )
        configure = ["./configure", "--disable-docs", "--disable-coverage"]
        subprocess.run(configure, cwd=code, check=True, capture_output=True)
        for power in (0, 10):
            (code / "thread.o").unlink(missing_ok=True)
            for one in code.glob("*thread.o"):
                one.unlink()
            command = ["make", "-j2", "memcached", f"CFLAGS=-O2 -g -pthread -DITEM_POWER={power}"]
            subprocess.run(command, cwd=code, check=True, capture_output=True)
            (code / "memcached").rename(self._program(power))

    @contextmanager
    def running(self, setting: Setting, environment: Mapping[str, str]) -> Iterator[Run]:
        port = servers.free_port()
        command = [self._program(setting["power"]), "-u", "root", "-l", "127.0.0.1"]
        command += ["-p", str(port), "-U", "0", "-t", str(setting["threads"])]
        numbers = (port, self._CONNECTIONS, self._BATCH, self._LONG_S, self._PAUSE_US)
        load = [self._load, *map(str, numbers)]
        with process(on_cpus(command, setting["cpus"]), environment) as server:
            while not servers.listens(port):
                assert server.poll() is None, "memcached did not start"
            with process(load, {}):
                yield Run(server.pid, lambda: _requests(port))


def _requests(port: int) -> float:
    """Return the gets and sets that the server counted."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"stats\r\n")
        text = b""
        while not text.endswith(b"END\r\n"):
            text += connection.recv(65536)
    found = dict(line.split()[1:3] for line in text.splitlines() if line.startswith(b"STAT cmd_"))
    return float(found[b"cmd_get"]) + float(found[b"cmd_set"])
