"""Measure what the library costs real servers under load, as a table for docs/overhead.md.

    make programs-bench ROUNDS=40

Two servers of each kind run side by side, one unprepared and one with the library at its default
level. The load goes to one server after the other, and each ratio is of one round. The client runs
on the same processors, so throughput shows less than the server's own CPU time for a request.
"""

from __future__ import annotations

import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from support import servers
from support.targets import Compiler, Target

SECONDS = 1
#: Puts load on a server for SECONDS; returns the requests (or transactions) and their seconds.
Load = Callable[[], tuple[float, float]]


@dataclass(frozen=True)
class Turn:
    """One server in one turn under load."""

    rate: float  # requests a second
    cpu_us: float  # CPU time of the server for each request


def need(command: str, package: str = "") -> Path:
    path = shutil.which(command, path="/usr/bin:/usr/sbin:/bin:/sbin")
    if path is None:
        sys.exit(f"{command} is missing: apt-get install {package or command}")
    return Path(path)


def take_turn(server: Target, load: Load) -> Turn:
    before = cpu_ns(server.pid)
    requests, seconds = load()
    return Turn(requests / seconds, (cpu_ns(server.pid) - before) / requests / 1000)


def cpu_ns(pid: int) -> int:
    """Return the CPU time of a process's living threads, more exactly than /proc/PID/stat."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks)


def memcached(
    level: str | None, stack: ExitStack, batch: int, compiler: Compiler
) -> tuple[Target, Load]:
    port = servers.free_port()
    command = [str(need("memcached")), "-u", "root", "-l", "127.0.0.1", "-p", str(port)]
    server = stack.enter_context(
        servers.running([*command, "-U", "0", "-t", "4"], level, lambda: servers.listens(port))
    )
    client = [str(compiler.program("memcached_load")), str(port), "16", str(batch), str(SECONDS)]

    def load() -> tuple[float, float]:
        said = json.loads(subprocess.run(client, capture_output=True, check=True).stdout)
        return said["requests"], said["seconds"]

    return server, load


def mariadb(level: str | None, stack: ExitStack, directory: Path) -> tuple[Target, Load]:
    database = servers.MariaDB(directory / (level or "unprepared"), need)
    command = [
        *database.command,
        "--innodb-flush-log-at-trx-commit=0",
    ]  # keeps the disk out of the figures
    server = stack.enter_context(servers.running(command, level, database.answers))
    database.ask("create database sbtest")
    database.sysbench("--table-size=10000", "prepare")

    def load() -> tuple[float, float]:
        options = ["--table-size=10000", "--threads=16", f"--time={SECONDS}"]
        said = database.sysbench(*options, "run")
        found = re.search(r"transactions: +(\d+).*total time: +([\d.]+)s", said, re.DOTALL)
        assert found, said
        return float(found[1]), float(found[2])

    return server, load


def row(name: str, unit: str, turns: Sequence[tuple[Turn, Turn]]) -> str:
    """Return a line of the table: each ratio with its quartiles, and the ratio of the best turns.

    A busy machine disturbs the best turns least.
    """
    cells = [name, f"{statistics.median(unprepared.rate for unprepared, _ in turns):,.0f} {unit}"]
    rates = [watched.rate / unprepared.rate for unprepared, watched in turns]
    costs = [watched.cpu_us / unprepared.cpu_us for unprepared, watched in turns]
    best_rate = max(watched.rate for _, watched in turns) / max(
        unprepared.rate for unprepared, _ in turns
    )
    best_cost = min(watched.cpu_us for _, watched in turns) / min(
        unprepared.cpu_us for unprepared, _ in turns
    )
    for ratios, best in ((rates, best_rate), (costs, best_cost)):
        low, middle, high = statistics.quantiles(ratios, n=4)
        cells += [f"{middle:.3f}", f"{low:.3f}-{high:.3f}", f"{best:.3f}"]
    return f"| {' | '.join(cells)} |"


def measure(name: str, unit: str, rounds: int, pair: Sequence[tuple[Target, Load]]) -> str:
    turns = []
    for number in range(rounds + 1):
        first = number % 2  # the first server changes from round to round
        taken = {i: take_turn(*pair[i]) for i in (first, 1 - first)}
        if number:  # the first round fills caches
            turns.append((taken[0], taken[1]))
    return row(name, unit, turns)


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    print("| server | unprepared | throughput | quartiles | best", end="")
    print(" | processor time | quartiles | best |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory(prefix="locktop-bench-") as name, ExitStack() as stack:
        directory = Path(name)
        compiler = Compiler(directory)
        for batch in (1, 32):
            pair = [memcached(level, stack, batch, compiler) for level in (None, "contended")]
            title = f"memcached, 16 connections, {batch} request{'s' * (batch > 1)} at a time"
            print(measure(title, "requests/s", rounds, pair), flush=True)
        pair = [mariadb(level, stack, directory) for level in (None, "contended")]
        title = "MariaDB, sysbench oltp_read_write --threads=16"
        print(measure(title, "transactions/s", rounds, pair), flush=True)


if __name__ == "__main__":
    main()
