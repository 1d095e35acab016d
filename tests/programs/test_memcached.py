"""memcached: worker threads and a table of mutexes; the clients check each answer."""

from __future__ import annotations

import random
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from support import servers, tool, unprepared, watched
from support.targets import PATIENCE_S, Target
from support.watched import Need

from locktop.collector.model import Kind

WORKERS, CLIENTS, BATCHES, BATCH = 4, 8, 60, 50


@dataclass(frozen=True)
class Answered:
    """The clients' results, and the server's own statistics."""

    stored: int
    found: int
    cmd_set: int
    cmd_get: int
    get_hits: int
    curr_items: int


@contextmanager
def memcached(need: Need, level: str | None) -> Iterator[tuple[Target, int]]:
    port = servers.free_port()
    command = [str(need("memcached")), "-u", "root", "-l", "127.0.0.1", "-p", str(port), "-U", "0"]
    command += ["-t", str(WORKERS)]
    with servers.running(command, level, lambda: servers.listens(port)) as server:
        yield server, port


def client(port: int, number: int) -> tuple[int, int]:
    """Store and fetch values; return the numbers of stored and of unchanged values."""
    stored = found = 0
    values = random.Random(number)
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as connection:
        answers = connection.makefile("rb")
        for batch in range(BATCHES):
            batch_values = [b"%x" % values.getrandbits(256) for _ in range(BATCH)]
            keys = [b"key-%d-%d" % (number, batch * BATCH + n) for n in range(BATCH)]
            pairs = list(zip(keys, batch_values, strict=True))
            connection.sendall(
                b"".join(b"set %s 0 0 %d\r\n%s\r\n" % (k, len(v), v) for k, v in pairs)
            )
            stored += sum(answers.readline() == b"STORED\r\n" for _ in pairs)
            connection.sendall(b"".join(b"get %s\r\n" % key for key in keys))
            for key, value in pairs:
                wanted = b"VALUE %s 0 %d\r\n%s\r\nEND\r\n" % (key, len(value), value)
                found += answers.read(len(wanted)) == wanted
    return stored, found


def statistics(port: int) -> dict[str, str]:
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as connection:
        connection.sendall(b"stats\r\n")
        with connection.makefile("r", encoding="ascii", newline="\r\n") as file:
            words = [line.split() for line in iter(file.readline, "END\r\n")]
    return {name: value for _, name, value, *_ in words}


def load(port: int) -> Answered:
    """Put load on the server from all clients at once."""
    with ThreadPoolExecutor(CLIENTS) as pool:
        counts = list(pool.map(lambda number: client(port, number), range(CLIENTS)))
    said = statistics(port)
    names = ("cmd_set", "cmd_get", "get_hits", "curr_items")
    return Answered(
        sum(stored for stored, _ in counts),
        sum(found for _, found in counts),
        *(int(said[name]) for name in names),
    )


@pytest.mark.parametrize("level", [None, "contended", "all"])
def test_each_request_is_answered(level: str | None, need: Need) -> None:
    sent = CLIENTS * BATCHES * BATCH
    with memcached(need, level) as (server, port):
        assert load(port) == Answered(*[sent] * 6)
        if level is None:
            return
        document = watched.checked(tool.snapshot(server.pid))
    names = [thread["name"] for thread in document["threads"]]
    assert sum("worker" in name for name in names) == WORKERS, names
    assert document["unseen_waiters"] == []
    taken = watched.total(document, "acquisitions", "mutex")
    assert taken > 2 * sent, "each request takes at least one lock"


def test_scans_without_the_library(need: Need, tmp_path: Path) -> None:
    """The sampling source scans under load, and then beside gdb."""
    sent = CLIENTS * BATCHES * BATCH
    with memcached(need, None) as (server, port):
        answered, snapshots = unprepared.scans_while(server.pid, lambda: load(port))
        assert answered == Answered(*[sent] * 6)
        assert snapshots, "no scan during the load"
        for seen in snapshots:
            assert sum("worker" in thread.name for thread in seen.threads) == WORKERS
        # A scan may find an unknown mutex between two owners; that snapshot has a futex instead.
        for earlier, later in pairwise(snapshots):
            assert not {*earlier.unobserved_waiters} & {*later.unobserved_waiters}
        kinds = unprepared.beside_gdb(server.pid, need("gdb"), tmp_path)
        assert kinds.keys() == {Kind.COND}, (
            "only maintenance threads wait for anything but requests"
        )
        assert load(port).found == sent, "the server continues to work"


@pytest.mark.parametrize("level", [None, "contended"])
def test_it_speaks_its_protocol(level: str | None, need: Need) -> None:
    with memcached(need, level) as (_, port):
        command = [
            str(need("memccapable", "libmemcached-tools")),
            "-h",
            "127.0.0.1",
            "-p",
            str(port),
        ]
        done = subprocess.run([*command, "-t", "30"], capture_output=True, timeout=PATIENCE_S)
    assert b"All tests passed" in done.stdout, done.stdout
