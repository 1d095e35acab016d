"""Small programs with a known verdict, each beside a near miss without a deadlock.

A program is the scripts of its threads: tests/targets/deadlock/scripted_threads.c runs them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass

import pytest
from support.targets import PATIENCE_S, Compiler, Target, remove_file_of, start_time

from locktop.collector.model import BlockReason, Snapshot
from locktop.collector.sources.attach import attach
from locktop.collector.sources.launch import preload_environment

#: A possible deadlock is reported of waits that have lasted for one second.
_SETTLED_S = 1.2
_BLOCKING = {
    "lock", "timedlock", "read", "timedread", "write", "timedwrite", "spin", "get", "timedget",
    "once", "arrive", "join", "timedjoin", "wait", "timedwait",
}  # fmt: skip

NO_THREAD = -1
#: The edges of a cycle: the number of the waiting thread, the reason, the number of the other one.
Cycle = set[tuple[int, str, int]]


@dataclass(frozen=True)
class Program:
    """The arguments of tests/targets/deadlock/scripted_threads.c."""

    objects: tuple[str, ...]
    scripts: tuple[str, ...]

    @property
    def arguments(self) -> tuple[str, ...]:
        return self.objects + self.scripts

    def waiters(self) -> set[int]:
        """Return the threads that end up waiting."""
        last = [script.rpartition(", ")[2].partition(" ")[0] for script in self.scripts]
        return {number for number, step in enumerate(last) if step in _BLOCKING}


def of(*scripts: str, objects: str = "", main: str = "stay") -> Program:
    return Program(tuple(objects.split()), (main, *scripts))


@dataclass(frozen=True)
class DeadlockCase:
    """A program that is deadlocked, and one that is not."""

    program: Program
    near_miss: Program
    cycle: Cycle
    stuck: set[int] | None = None  # threads behind the cycle; None: no thread


CERTAIN = {
    "two mutexes": DeadlockCase(
        of("lock a, meet 1, lock b", "lock b, meet 1, lock a"),
        of("lock a, lock b, stay", "after 1, lock a, lock b"),
        {(1, "held", 2), (2, "held", 1)},
    ),
    "two mutexes, one taken by trylock": DeadlockCase(
        of("lock a, meet 1, lock b", "trylock b, meet 1, lock a"),
        of("lock a, meet 1, lock b", "lock b, meet 1, timedlock a"),
        {(1, "held", 2), (2, "held", 1)},
    ),
    "a ring of five": DeadlockCase(
        of(*[f"lock {x}, meet 1, lock {y}" for x, y in ("ab", "bc", "cd", "de", "ea")]),
        of(*[f"lock {x}, meet 1, lock {y}" for x, y in ("ab", "bc", "cd", "de")],
           "lock e, meet 1, stay"),
        {(n, "held", n % 5 + 1) for n in range(1, 6)},
    ),
    "two rings": DeadlockCase(
        of("lock a, meet 1, lock b", "lock b, meet 1, lock a", "after 1, lock a"),
        of("lock a, meet 1, lock b", "lock b, meet 1, stay", "after 1, lock a"),
        {(1, "held", 2), (2, "held", 1)},
        {3},
    ),
    "a mutex taken again": DeadlockCase(
        of("lock a, lock a"),
        of("lock a, lock a, stay", "after 1, lock a", objects="a=recursive"),
        {(1, "held", 1)},
    ),
    "a mutex taken again, with priority inheritance": DeadlockCase(
        of("lock a, meet 1, lock b", "lock b, meet 1, lock a", objects="a=inherit"),
        of("lock a, lock a, stay", "after 1, lock a", objects="a=checked"),
        {(1, "held", 2), (2, "held", 1)},
    ),
    "one reader": DeadlockCase(
        of("read r, meet 1, lock a", "lock a, meet 1, write r"),
        of("read r, meet 1, lock a", "lock a, meet 1, read r, stay"),
        {(1, "held", 2), (2, "held", 1)},
    ),
    "one of many readers": DeadlockCase(
        of("read r, meet 1, stay", "read r, meet 1, lock a", "lock a, meet 1, write r"),
        of("read r, meet 1, lock b", "read r, meet 1, stay", "lock a, meet 1, write r",
           "lock b, meet 1, stay"),
        {(2, "held", 3), (3, "held", 2)},
    ),
    "two writers": DeadlockCase(
        of("write r, meet 1, write s", "write s, meet 1, read r"),
        of("write r, meet 1, write s", "write s, meet 1, timedread r"),
        {(1, "held", 2), (2, "held", 1)},
    ),
    "a reader again, behind a writer": DeadlockCase(
        of("read r, meet 1, after 2, read r", "meet 1, write r", objects="r=writers"),
        of("read r, meet 1, after 2, read r, stay", "meet 1, write r"),
        {(1, "behind", 2), (2, "held", 1)},
    ),
    "a reader behind a writer": DeadlockCase(
        of("read r, meet 1, lock a", "meet 1, write r", "lock a, meet 1, after 2, read r",
           objects="r=writers"),
        of("read r, meet 1, lock a", "meet 1, timedwrite r", "lock a, meet 1, after 2, read r",
           objects="r=writers"),
        {(1, "held", 3), (3, "behind", 2), (2, "held", 1)},
    ),
    "a reader that wants to write": DeadlockCase(
        of("read r, write r"),
        of("read r, release r, write r, stay", "after 1, read r"),
        {(1, "held", 1)},
    ),
    "two readers that want to write": DeadlockCase(
        of("read r, meet 1, write r", "read r, meet 1, write r"),
        of("read r, meet 1, stay", "read r, meet 1, release r, write r"),
        {(1, "held", 1)},
        {2},
    ),
    "semaphores as locks": DeadlockCase(
        of("get e, post e, get e, meet 1, get f", "get f, meet 1, get e"),
        of("get e, post f, get e", "get f, stay", objects="e=1 f=0"),
        {(1, "got", 2), (2, "got", 1)},
    ),
    "a semaphore and a mutex": DeadlockCase(
        of("get e, meet 1, lock a", "lock a, meet 1, get e"),
        of("get e, meet 1, lock a", "lock a, meet 1, get e", "post e, get e, meet 1, stay"),
        {(1, "held", 2), (2, "got", 1)},
    ),
    "a semaphore of two": DeadlockCase(
        of(*["get e, post e, get e, meet 1, lock a"] * 2, "lock a, meet 1, get e", objects="e=2"),
        of("get e, post e, get e, meet 1, lock a", "get e, post e, get e, meet 1, stay",
           "lock a, meet 1, get e", objects="e=2"),
        {(1, "held", 3), (3, "got", 1)},
        {2},
    ),
    "a semaphore taken again": DeadlockCase(
        of("get e, post e, get e, get e"),
        of("get e, get e"),  # another thread may post e for the first time
        {(1, "got", 1)},
    ),
    "a semaphore initialised again": DeadlockCase(
        of("get e, post e, renew e, get e, meet 1, lock a", "lock a, meet 1, get e"),
        of("get e, post e, renew e, meet 1, lock a", "lock a, meet 1, get e, get e"),
        {(1, "held", 2), (2, "got", 1)},
    ),
    "a semaphore initialised again while held": DeadlockCase(
        of("get e, renew e, get e, meet 1, lock a", "lock a, meet 1, get e"),
        of("get e, renew e, meet 1, lock a", "lock a, meet 1, get e, get e"),
        {(1, "held", 2), (2, "got", 1)},
    ),
    "a queue within a lock": DeadlockCase(
        of("lock a, get e, post e, get e, meet 1, join 2", "meet 1, get e"),
        of("lock a, get e, post e, post e, meet 1, join 2", "meet 1, get e, get e, get e"),
        {(1, "lives", 2), (2, "got", 1)},
    ),
    "the end of one who wants the lock": DeadlockCase(
        of("lock a, meet 1, join 2", "meet 1, lock a"),
        of("lock a, meet 1, join 2", "meet 1, trylock a, stay"),
        {(1, "lives", 2), (2, "held", 1)},
    ),
    "three that join each other": DeadlockCase(
        of("meet 1, join 2", "meet 1, join 3", "meet 1, join 1"),
        of("meet 1, join 2", "meet 1, join 3", "meet 1, timedjoin 1"),
        {(1, "lives", 2), (2, "lives", 3), (3, "lives", 1)},
    ),
    "the main thread": DeadlockCase(
        of("meet 1, join 2", "meet 1, lock a", main="lock a, meet 1, join 1"),
        of("meet 1, join 2", "meet 1, stay", main="lock a, meet 1, join 1"),
        {(0, "lives", 1), (1, "lives", 2), (2, "held", 0)},
    ),
    "two mutexes, when the main thread has ended": DeadlockCase(
        of("lock a, meet 1, lock b", "lock b, meet 1, lock a", main="exit"),
        of("lock a, meet 1, lock b", "lock b, meet 1, timedlock a", main="exit"),
        {(1, "held", 2), (2, "held", 1)},
    ),
    "a routine that runs once": DeadlockCase(
        of("once o, meet 1, join 2", "meet 1, once o"),
        of("once o, meet 1, stay", "meet 1, once o"),
        {(1, "lives", 2), (2, "runs", 1)},
    ),
    "a routine that wants a lock": DeadlockCase(
        of("once o, meet 1, lock a", "lock a, meet 1, once o"),
        of("once o, meet 1, timedlock a", "lock a, meet 1, once o"),
        {(1, "held", 2), (2, "runs", 1)},
    ),
    "a routine that runs itself": DeadlockCase(
        of("once o, once o"),
        of("once o, once p, stay", "after 1, once p"),
        {(1, "runs", 1)},
    ),
    "a barrier that one cannot reach": DeadlockCase(
        of("lock a, meet 1, arrive b", "meet 1, lock a", main="join 1"),
        of("lock a, meet 1, arrive b", "meet 1, lock a"),
        {(1, "absent", 0), (0, "lives", 1)},
        {2},
    ),
    "a barrier for more than there are": DeadlockCase(
        of("meet 1, arrive b", main="meet 1, after 1, arrive b", objects="b=3"),
        of("meet 1, arrive b", "stay", main="meet 1, after 1, arrive b", objects="b=3"),
        {(1, "absent", NO_THREAD)},
        {0},
    ),
    "a barrier and a semaphore": DeadlockCase(
        of("get e, meet 1, arrive b", "meet 1, get e", "meet 1, get e", main="join 3",
           objects="b=3"),
        of("get e, meet 1, arrive b", "meet 1, get e", "meet 1, timedget e", main="join 3",
           objects="b=3"),
        {(1, "absent", 2), (2, "got", 1)},
        {0, 3},
    ),
    "a mutex of a thread that ended": DeadlockCase(
        of("lock a, exit", "ended 1, lock a"),
        of("lock a, exit", "ended 1, lock a, stay", objects="a=robust"),
        {(2, "abandoned", 1)},
    ),
    "a mutex of a thread that ends during the wait": DeadlockCase(
        of("lock a, meet 1, after 2", "meet 1, lock a", "after 2, lock a"),
        of("lock a, meet 1, after 2", "meet 1, lock a, stay", objects="a=robust"),
        {(2, "abandoned", 1)},
        {3},
    ),
    "a chain of waits for a thread that ended": DeadlockCase(
        of("lock a, exit", "ended 1, lock b, meet 1, lock a", "lock c, meet 1, lock b",
           "meet 1, join 3"),
        of("lock a, exit", "ended 1, lock b, meet 1, timedlock a", "lock c, meet 1, lock b",
           "meet 1, join 3"),
        {(2, "abandoned", 1)},
        {3, 4},
    ),
    "a reader that ended": DeadlockCase(
        of("read r, exit", "ended 1, write r"),
        of("read r, exit", "ended 1, read r, stay", "after 2, timedwrite r"),
        {(2, "abandoned", 1)},
    ),
    "a semaphore of a thread that ended": DeadlockCase(
        of("get e, post e, get e, exit", "ended 1, get e"),
        of("get e, exit", "ended 1, get e"),
        {(2, "abandoned", 1)},
    ),
    "threads behind a deadlock": DeadlockCase(
        of("lock a, meet 1, lock b", "lock b, meet 1, lock a", "lock c, meet 1, after 1, lock a",
           "read r, meet 1, after 3, lock c", "meet 1, after 4, write r", "meet 1, join 5"),
        of("lock a, meet 1, lock b", "lock b, meet 1, stay", "lock c, meet 1, after 1, lock a",
           "read r, meet 1, after 3, lock c", "meet 1, after 4, write r", "meet 1, join 5"),
        {(1, "held", 2), (2, "held", 1)},
        {3, 4, 5, 6},
    ),
    "a cycle of every kind of wait": DeadlockCase(
        of("lock a, meet 1, write r", "read r, meet 1, get e", "get e, meet 1, once o",
           "once o, meet 1, join 5", "meet 1, lock a"),
        of("lock a, meet 1, write r", "read r, meet 1, get e", "get e, meet 1, once o",
           "once o, meet 1, join 5", "meet 1, timedlock a"),
        {(1, "held", 2), (2, "got", 3), (3, "runs", 4), (4, "lives", 5), (5, "held", 1)},
    ),
}  # fmt: skip

#: Each of these programs occupies a processor, so they run one at a time.
SPINNING = {
    "two spin locks": DeadlockCase(
        of("spin s, meet 1, spin t", "spin t, meet 1, spin s"),
        of("spin s, meet 1, spin t", "spin t, meet 1, stay"),
        {(1, "held", 2), (2, "held", 1)},
    ),
    "a spin lock taken again": DeadlockCase(
        of("spin s, spin s"),
        of("spin s, unspin s, spin s, meet 1, stay", "meet 1, spin s"),
        {(1, "held", 1)},
    ),
    "a spin lock and a mutex": DeadlockCase(
        of("spin s, meet 1, lock a", "lock a, meet 1, spin s"),
        of("spin s, meet 1, timedlock a", "lock a, meet 1, spin s"),
        {(1, "held", 2), (2, "held", 1)},
    ),
}

POSSIBLE = {
    "a monitor within a monitor": DeadlockCase(
        of("lock a, meet 1, lock c, wait c", "signal c, meet 1, after 1, lock a"),
        of("lock a, meet 1, lock c, wait c", "signal c, meet 1, after 1, lock a",
           main="signal c, meet 1, stay"),
        {(1, "signals", 2), (2, "held", 1)},
    ),
    "a signal by a thread that ended": DeadlockCase(
        of("lock a, meet 1, lock c, wait c", "signal c, meet 1, after 1, lock a"),
        of("lock a, meet 1, lock c, wait c", "signal c, meet 1, after 1, lock a",
           "signal c, meet 1, exit"),
        {(1, "signals", 2), (2, "held", 1)},
    ),
    "two semaphores that other threads post": DeadlockCase(
        of(*[f"post {x}, get {y}, meet 1, get {z}" for x, y, z in ("aef", "bfe")]),
        of(*[f"post {x}, get {y}, meet 1, get {y}" for x, y in ("ae", "bf")]),
        {(1, "got", 2), (2, "got", 1)},
    ),
    "a semaphore that is no lock": DeadlockCase(
        of("lock a, meet 1, get e", "post e, get e, meet 1, lock a", objects="e=0"),
        of("lock a, meet 1, get e", "post e, get e, meet 1, lock a",
           "post f, post e, get e, meet 1, stay", objects="e=0"),
        {(1, "signals", 2), (2, "held", 1)},
    ),
    "a semaphore of several processes": DeadlockCase(
        of("get e, meet 1, lock a", "lock a, meet 1, get e", objects="e=shared"),
        of("get e, meet 1, lock a", "lock a, meet 1, timedget e", objects="e=shared"),
        {(1, "held", 2), (2, "got", 1)},
    ),
    "a barrier that both have passed": DeadlockCase(
        of("arrive b, lock a, meet 1, arrive b", "arrive b, meet 1, lock a"),
        of("arrive b, lock a, meet 1, arrive b", "arrive b, meet 1, stay"),
        {(1, "absent", 2), (2, "held", 1)},
    ),
    "a reader that ended, beside a reader that lives": DeadlockCase(
        of("read r, exit", "ended 1, read r, meet 1, stay", "meet 1, write r"),
        of("read r, release r, exit", "ended 1, read r, meet 1, stay", "meet 1, write r"),
        {(3, "abandoned", 1)},
    ),
}  # fmt: skip

#: Programs without a deadlock: threads that wait for work, and other waits like a deadlock's.
SILENT = {
    "a pool": of(*["meet 1, lock c, wait c"] * 2, "signal c, meet 1, lock c, wait c"),
    "a pool that is joined": of("meet 1, lock c, wait c", "stay", main="signal c, meet 1, join 1"),
    "each waits for the other's word": of(
        "post f, meet 1, get e", "post e, get e, meet 1, get f, get f", objects="e=0 f=0"
    ),
    "a queue that is full": of(
        "get e, post f, get e, post f, get e", "meet 1, stay", "lock a, meet 1, join 1",
        objects="e=2 f=0",
    ),
    "a queue that is empty": of("lock a, get f", "post e, lock b, get f", objects="f=0"),
    "a pipeline": of(
        "get e, post f, get e", "get f, post g, get f, post e, get h", "get g, stay",
        objects="e=1 f=0 g=0 h=0",
    ),
    "a lock in a lock": of("lock a, lock b, lock c, stay", "after 1, lock b", "after 1, lock c"),
    "a barrier of three": of("meet 1, arrive b", "meet 1, arrive b", objects="b=3"),
    "a semaphore initialised again while held, then taken by a thread that ended": of(
        "get e, post e, get e, renew e, meet 1, after 3, lock a", "meet 1, get e, exit",
        "lock a, meet 2, get e", main="ended 2, churn, meet 2, stay",
    ),
}  # fmt: skip


class Running:
    """One running program of a table."""

    def __init__(self, compiler: Compiler, program: Program) -> None:
        command = [str(compiler.program("scripted_threads")), *program.arguments]
        self.target = Target(command, preload_environment(None))
        self.waiters = program.waiters()
        self._started = start_time(self.target.pid)
        self._tids: list[int] = []

    def scan(self) -> Snapshot:
        """Attach, and scan once."""
        source = attach(self.target.pid)
        try:
            return source.scan()
        finally:
            source.close()

    def settled(self) -> Snapshot:
        """Scan until all waiters of the program have waited for _SETTLED_S seconds."""
        tids = self.tids()
        wanted = {tids[number] for number in self.waiters}
        deadline = time.monotonic() + PATIENCE_S
        while True:
            seen = self.scan()
            long = {
                thread.tid
                for thread in seen.threads
                if thread.waiting_for and thread.waiting_for.duration_s > _SETTLED_S
            }
            if wanted <= long:
                return seen
            assert time.monotonic() < deadline, f"these threads do not wait: {wanted - long}"
            time.sleep(0.05)  # leaves the CPU to the targets

    def tids(self) -> list[int]:
        if not self._tids:
            self._tids = list(map(int, self.target.truth()["tids"]))
        return self._tids

    def deadlocks(self, seen: Snapshot) -> list[tuple[bool, Cycle, set[int]]]:
        """Return each deadlock: whether it is certain, its edges, and the threads behind it."""
        number = {tid: number for number, tid in enumerate(self.tids())} | {0: NO_THREAD}
        return [
            (
                found.certain,
                {(number[e.tid], str(e.reason), number[e.held_by]) for e in found.cycle},
                {number[tid] for tid in found.stuck},
            )
            for found in seen.deadlocks
        ]

    def close(self) -> None:
        self.target.stop()
        remove_file_of(self.target.pid, self._started)


@pytest.fixture(scope="module")
def all_running(compiler: Compiler) -> Iterator[dict[Program, Running]]:
    """All programs that sleep, started together, so that all waits become long together."""
    with ExitStack() as stack:
        running: dict[Program, Running] = {}
        cases = (*CERTAIN.values(), *POSSIBLE.values())
        programs = [program for case in cases for program in (case.program, case.near_miss)]
        for program in dict.fromkeys((*programs, *SILENT.values())):
            running[program] = Running(compiler, program)
            stack.callback(running[program].close)
        yield running


def check_deadlock(running: Running, case: DeadlockCase, certain: bool) -> None:
    running.settled()
    assert running.deadlocks(running.scan()) == [(certain, case.cycle, case.stuck or set())]


def check_no_deadlock(running: Running) -> None:
    assert running.deadlocks(running.settled()) == []


@pytest.mark.parametrize("name", CERTAIN)
def test_a_deadlock_is_reported_as_certain(name: str, all_running: dict[Program, Running]) -> None:
    check_deadlock(all_running[CERTAIN[name].program], CERTAIN[name], certain=True)


@pytest.mark.parametrize("name", [
    name for name, case in CERTAIN.items() if any(reason == "got" for _, reason, _ in case.cycle)
])  # fmt: skip
def test_a_semaphore_in_a_certain_deadlock_is_used_as_a_lock(
    name: str, all_running: dict[Program, Running]
) -> None:
    running = all_running[CERTAIN[name].program]
    running.settled()
    seen = running.scan()
    tids, locks = running.tids(), {lock.id: lock for lock in seen.locks}
    (found,) = seen.deadlocks
    for edge in (edge for edge in found.cycle if edge.reason is BlockReason.GOT):
        lock = locks[edge.waits_for]
        assert lock.used_as_lock
        assert not lock.idle
        assert lock.idle_s == 0.0 < lock.wait_s
        one_has_it = lock.first_value == 1 and edge.held_by != edge.tid
        assert lock.holders == ((edge.held_by,) if one_has_it else ())
        assert edge.held_by in tids


@pytest.mark.parametrize("name", CERTAIN)
def test_a_near_miss_of_a_certain_deadlock_is_not_reported(
    name: str, all_running: dict[Program, Running]
) -> None:
    check_no_deadlock(all_running[CERTAIN[name].near_miss])


@pytest.mark.parametrize("name", POSSIBLE)
def test_a_deadlock_is_reported_as_possible(name: str, all_running: dict[Program, Running]) -> None:
    check_deadlock(all_running[POSSIBLE[name].program], POSSIBLE[name], certain=False)


@pytest.mark.parametrize("name", POSSIBLE)
def test_a_near_miss_of_a_possible_deadlock_is_not_reported(
    name: str, all_running: dict[Program, Running]
) -> None:
    check_no_deadlock(all_running[POSSIBLE[name].near_miss])


@pytest.mark.parametrize("name", SILENT)
def test_waits_without_a_deadlock_are_not_reported(
    name: str, all_running: dict[Program, Running]
) -> None:
    check_no_deadlock(all_running[SILENT[name]])


@pytest.mark.parametrize("name", SPINNING)
def test_a_deadlock_of_spinning_threads_is_certain(name: str, compiler: Compiler) -> None:
    with closing(Running(compiler, SPINNING[name].program)) as running:
        check_deadlock(running, SPINNING[name], certain=True)
    with closing(Running(compiler, SPINNING[name].near_miss)) as running:
        check_no_deadlock(running)
