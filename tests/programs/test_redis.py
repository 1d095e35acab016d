"""redis with I/O threads: the main thread makes each of them wait with a mutex, on purpose."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from support import servers, tool, watched
from support.targets import PATIENCE_S
from support.watched import Need

pytestmark = pytest.mark.big

IO_THREADS, REQUESTS = 4, 20_000
COMMANDS = ("set", "get", "incr", "lpush", "lpop", "sadd")


def calls(port: int, need: Need) -> dict[str, tuple[int, int]]:
    """Return the numbers of calls and failures of each command, as the server counts them."""
    command = [str(need("redis-cli", "redis-tools")), "-p", str(port), "info", "commandstats"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S).stdout
    found = re.findall(r"cmdstat_(\w+):calls=(\d+).*failed_calls=(\d+)", said)
    return {name: (int(made), int(failed)) for name, made, failed in found if name in COMMANDS}


def load(port: int, need: Need) -> dict[str, tuple[int, int]]:
    command = [
        str(need("redis-benchmark", "redis-tools")),
        "-p",
        str(port),
        "-t",
        ",".join(COMMANDS),
    ]
    command += ["-n", str(REQUESTS), "-P", "16", "-c", "50", "-q", "-e"]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    return calls(port, need)


@pytest.mark.parametrize("level", [None, "contended", "all"])
def test_each_request_is_answered(level: str | None, need: Need, tmp_path: Path) -> None:
    port = servers.free_port()
    command = [str(need("redis-server")), "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    command += ["--io-threads", str(IO_THREADS), "--io-threads-do-reads", "yes"]
    command += ["--dir", str(tmp_path), "--logfile", str(tmp_path / "log")]
    with servers.running(command, level, lambda: servers.listens(port)) as server:
        assert load(port, need) == dict.fromkeys(COMMANDS, (REQUESTS, 0))
        if level is None:
            return
        document = watched.checked(tool.snapshot(server.pid))
    names = [thread["name"] for thread in document["threads"]]
    assert sum(name.startswith("io_thd") for name in names) == IO_THREADS - 1, names
    assert watched.total(document, "acquisitions", "mutex") > 0
