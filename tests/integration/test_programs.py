"""Real programs from Debian, under their own load, with the library and without."""

from __future__ import annotations

import re
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support import tool
from support.targets import PATIENCE_S, Target, remove_file_of, start_time

from locktop.collector.launch import preload_environment

Need = Callable[[str], Path]

SYSBENCH_THREADS, SYSBENCH_MUTEXES, SYSBENCH_LOCKS = 4, 2, 4_000_000
CLIENTS, KEYS_EACH = 8, 3000


def sysbench_events(output: str) -> int:
    found = re.search(r"total number of events:\s+(\d+)", output)
    assert found, output
    return int(found[1])


def test_sysbench_mutex(need: Need) -> None:
    command = [str(need("sysbench")), "mutex", f"--threads={SYSBENCH_THREADS}"]
    command += [f"--mutex-num={SYSBENCH_MUTEXES}", "--mutex-loops=500"]
    command += [f"--mutex-locks={SYSBENCH_LOCKS}", "run"]
    bare = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    with Target(command, preload_environment()) as target:
        document = tool.look_until(target.pid, contended_mutexes, "contention in sysbench")
        status, lines = read_all(target)
    assert status == 0
    assert sysbench_events("\n".join(lines)) == sysbench_events(bare.stdout) == SYSBENCH_THREADS
    mutexes = [lock for lock in document["locks"] if lock["kind"] == "mutex"]
    hot = [lock for lock in mutexes if lock["contended"]]
    assert len(hot) >= 1
    assert hot[0]["acquisitions"] > hot[0]["contended"]
    stacks = [tool.functions(document, one["stack"]) for one in hot[0]["wait_stacks"]]
    assert all(len(stack) >= 2 for stack in stacks), "unwound though it has no frame pointers"


def contended_mutexes(document: dict[str, Any]) -> bool:
    return any(lock["kind"] == "mutex" and lock["contended"] > 100 for lock in document["locks"])


def read_all(target: Target) -> tuple[int, list[str]]:
    """Read what a program says until it closes its output."""
    lines: list[str] = []
    empty = 0
    while empty < 20:  # sysbench says empty lines too; at the end there is nothing else
        lines.append(target.line())
        empty = 0 if lines[-1] else empty + 1
    return target.process.wait(PATIENCE_S), lines


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def memcached(program: Path, environment: dict[str, str]) -> Iterator[tuple[Target, int]]:
    port = free_port()
    command = [str(program), "-u", "root", "-l", "127.0.0.1", "-p", str(port), "-U", "0", "-t", "4"]
    with Target(command, environment) as target:
        started = start_time(target.pid)
        while not answers(port):
            assert target.process.poll() is None, "memcached did not start"
        yield target, port
        target.process.terminate()
        assert target.process.wait(PATIENCE_S) == 0
    remove_file_of(target.pid, started)


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def statistics(port: int) -> dict[str, str]:
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as connection:
        connection.sendall(b"stats\r\n")
        with connection.makefile("r", encoding="ascii", newline="\r\n") as file:
            lines = iter(file.readline, "END\r\n")
            words = [line.split() for line in lines]
    return {name: value for _, name, value, *_ in words}


def load(port: int, need: Need) -> dict[str, str]:
    """Put load on the server; return what it then says of itself."""
    server = f"--servers=127.0.0.1:{port}"
    size = [f"--concurrency={CLIENTS}", f"--execute-number={KEYS_EACH}"]
    for kind in ("set", "get"):
        command = [str(need("memcslap")), server, *size, f"--test={kind}"]
        subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE_S)
    said = statistics(port)
    return {key: said[key] for key in ("threads", "cmd_set", "total_items", "evictions")}


def test_memcached_under_load(need: Need) -> None:
    program = need("memcached")
    with memcached(program, {}) as (_, port):
        bare = load(port, need)
    with memcached(program, preload_environment()) as (target, port):
        assert load(port, need) == bare
        document = tool.snapshot(target.pid)
    assert int(bare["cmd_set"]) >= CLIENTS * KEYS_EACH
    names = {thread["name"] for thread in document["threads"]}
    assert any("worker" in name for name in names), names
    assert document["deadlocks"] == []
    taken = sum(lock["acquisitions"] for lock in document["locks"] if lock["kind"] == "mutex")
    assert taken > int(bare["cmd_set"]), "each set takes a lock at least"


@pytest.mark.parametrize("level", [None, "contended"])
def test_memcached_speaks_its_protocol(level: str | None, need: Need) -> None:
    environment = preload_environment(level) if level else {}
    with memcached(need("memcached"), environment) as (_, port):
        command = [str(need("memccapable")), "-h", "127.0.0.1", "-p", str(port), "-t", "30"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert "All tests passed" in done.stdout, done.stdout
