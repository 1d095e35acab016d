"""Healthy programs, and how to run them.

They are targets of the tests, near misses of the tables of deadlocks, and real programs that are
installed.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

from integration.deadlock import test_lock_order as orders
from integration.deadlock import test_verdict_table as deadlocks
from programs.test_cpython import PROGRAM as PYTHON_PROGRAM
from support.servers import free_port
from support.targets import Compiler, source_of

POSSIBLE, POTENTIAL, MISUSE = "possible", "potential", "misuse"
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin"


@dataclass(frozen=True)
class Healthy:
    """A program without an error. ``{port}`` in its commands stands for a free port."""

    name: str
    command: tuple[str, ...]
    doubtful: frozenset[str] = frozenset()  # the findings that are permitted all the same
    load: tuple[str, ...] = ()  # a command that puts load on the program without end
    ends_with_ok: bool = False  # at the end of stdin: the proof that no thread was deadlocked
    lives_s: float = 0.7  # the mean duration of the scans

    def ready(self) -> Healthy:
        """Return the program with a free port."""
        port = str(free_port())
        command = tuple(part.replace("{port}", port) for part in self.command)
        load = tuple(part.replace("{port}", port) for part in self.load)
        return replace(self, command=command, load=load)


def all_healthy(compiler: Compiler) -> dict[str, list[Healthy]]:
    """Return all healthy programs on this machine, by sort."""
    return {
        "fighting": list(_fighting(compiler)),
        "near misses": [*_near_misses(compiler), *_orders(compiler)],
        "real": list(_real()),
    }


# ---- targets ----

#: Targets that run or wait until they are killed, with their arguments.
_TARGETS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("nested_locks_one_order", ()),
    ("rolling_contention", ()),
    ("array_and_heap_mutexes", ()),
    ("hold_100ms", ()),
    ("semaphore_ping_pong", ()),
    ("barrier_late_arrival", ()),
    ("pool_waits_for_work", ()),
    ("once_with_waiters", ()),
    ("reader_behind_writer", ("timed",)),
    ("timed_waits_give_up", ()),
    ("spinlock_held_50ms", ()),
    ("priority_inheritance_handover", ()),
    ("soak_load", ()),
    ("six_pools", ("4",)),
    ("hold_around_cond_wait", ()),
    *(("waits_and_holds_logged", (kind,)) for kind in (
        "mutex", "recursive", "robust", "inherit", "adaptive", "write", "read", "spin", "custom",
        "cond", "many",
    )),
)  # fmt: skip


def _fighting(compiler: Compiler) -> Iterator[Healthy]:
    program = str(compiler.program("no_deadlock_scenarios"))
    listed = re.findall(
        r"^    SCENARIO\((\w+)\)", source_of("no_deadlock_scenarios").read_text(), re.M
    )
    for scenario in listed:
        yield Healthy(f"no_deadlock_scenarios {scenario}", (program, scenario), ends_with_ok=True)
    for name, arguments in _TARGETS:
        command = (str(compiler.program(name)), *arguments)
        yield Healthy(" ".join([name, *arguments]), command)


def _near_misses(compiler: Compiler) -> Iterator[Healthy]:
    interpreter = str(compiler.program("scripted_threads"))
    tables = (deadlocks.CERTAIN, deadlocks.POSSIBLE, deadlocks.SPINNING)
    near = {name: pair.near_miss for table in tables for name, pair in table.items()}
    for name, program in {**near, **deadlocks.SILENT}.items():
        command = (interpreter, *program.arguments)
        yield Healthy(f"scripted_threads: not {name}", command, _doubts(program))


def _doubts(program: deadlocks.Program) -> frozenset[str]:
    """Return the findings that are true of a program without a deadlock."""
    arguments = " ".join(program.arguments)
    doubts = set()
    if "exit" in arguments or "checked" in arguments:
        doubts.add(MISUSE)  # threads end with a lock; a mutex refuses its holder
    if "timedwrite" in arguments and "=writers" in arguments:
        doubts.add(POTENTIAL)  # one day the writer may wait without end
    return frozenset(doubts)


def _orders(compiler: Compiler) -> Iterator[Healthy]:
    for scenario in orders.NONE:
        program = str(compiler.program(orders.program_of(scenario)))
        doubtful = frozenset({MISUSE} if scenario == "handed_over" else ())
        yield Healthy(f"orders {scenario}", (program, scenario), doubtful)


# ---- real programs ----


def _again(command: str) -> tuple[str, ...]:
    return ("sh", "-c", f"while :; do {command}; sleep 0.05; done")


def _real() -> Iterator[Healthy]:
    yield Healthy("CPython", (sys.executable, "-c", PYTHON_PROGRAM), lives_s=1.0)
    in_order = str(source_of("python_locks_in_order"))
    yield Healthy("Python's locks in order", (sys.executable, in_order), lives_s=2.0)
    for needed, healthy in _INSTALLED:
        if all(shutil.which(command, path=_PATH) for command in needed):
            yield healthy


_INSTALLED = (
    (
        ("memcached", "memcslap"),
        Healthy(
            "memcached",
            ("memcached", "-u", "root", "-l", "127.0.0.1", "-p", "{port}", "-U", "0", "-t", "4"),
            load=_again("memcslap --servers=127.0.0.1:{port} --concurrency=8 --execute-number=500"),
            lives_s=1.2,
        ),
    ),
    (
        ("redis-server", "redis-benchmark"),
        Healthy(
            "redis",
            ("redis-server", "--port", "{port}", "--bind", "127.0.0.1", "--save", "",
             "--io-threads", "4", "--io-threads-do-reads", "yes", "--dir", "/tmp"),
            load=_again("redis-benchmark -p {port} -t set,get,lpush -n 20000 -P 16 -c 50 -q"),
            lives_s=1.2,
        ),
    ),
    (
        ("sysbench",),
        Healthy(
            "sysbench mutex",
            ("sysbench", "mutex", "--threads=8", "--mutex-num=2", "--mutex-locks=10000000",
             "--mutex-loops=100", "run"),
        ),
    ),
    (
        ("sysbench",),
        Healthy(
            "sysbench threads",
            ("sysbench", "threads", "--threads=8", "--thread-locks=2", "--time=60", "run"),
        ),
    ),
    (
        ("stress-ng",),
        Healthy(
            "stress-ng",
            ("stress-ng", "--pthread", "2", "--mutex", "1", "--sem", "1", "--timeout", "60"),
        ),
    ),
    (("java",), Healthy("JVM", ("java", str(source_of("JavaThreadsAddUp"))), lives_s=2.0)),
    (("node",), Healthy("Node.js", ("node", str(source_of("node_workers_add_up"))), lives_s=1.0)),
)  # fmt: skip
