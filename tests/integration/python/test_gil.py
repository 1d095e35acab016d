"""The thread that keeps Python's global interpreter lock (GIL), and deadlocks over it."""

from __future__ import annotations

import re
import time
from contextlib import closing
from pathlib import Path

import pytest
from support import tool
from support.eventually import until
from support.hangs import glibc
from support.pythons import PYTHON, pythons_with_gil
from support.targets import PATIENCE_S, Compiler, Target, source_of

from locktop.collector.model import Snapshot
from locktop.collector.render.words.patterns import GIL_ADVICE
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.render.words.source_location import short_location
from locktop.collector.sources.attach import attach
from locktop.collector.sources.launch import preload_environment
from locktop.tui.views import lock_details
from locktop.tui.views.blocking import about_line
from locktop.tui.views.styled_line import line_text, unfolded

PYTHONS = pythons_with_gil()
#: Since this version of glibc, sleeping calls do not save the register that libffi's frames need.
_ENDS_IN_LIBFFI = (2, 43)
_WORKS_AT = "works python_keeps_the_gil.py:17"
LINKS = {("loader", "renderer"), ("renderer", "loader")}
both_ways = pytest.mark.parametrize("prepared", [True, False], ids=["prepared", "unprepared"])


def environment(prepared: bool) -> dict[str, str] | None:
    return preload_environment(None) if prepared else None


@pytest.fixture(scope="module")
def library(compiler: Compiler) -> Path:
    return compiler.program("gil_and_state_lock", "-shared", "-fPIC")


def waits_for(snapshot: Snapshot, name: str) -> list[tuple[int, ...]]:
    """Return the holders for which the threads of a name wait."""
    return [
        thread.waiting_for.holders
        for thread in snapshot.threads
        if thread.name == name and thread.waiting_for is not None
    ]


@both_ways
@pytest.mark.parametrize("python", PYTHONS)
def test_a_thread_that_keeps_the_gil_is_named(python: str, prepared: bool) -> None:
    command = [python, str(source_of("python_keeps_the_gil")), "keeps"]
    with Target(command, environment(prepared)) as target:
        keeper = int(target.line())
        deadline = time.monotonic() + PATIENCE_S
        with closing(attach(target.pid)) as source:
            while True:
                snapshot = source.scan(resolve=True)
                assert not snapshot.deadlocks
                holders = waits_for(snapshot, "works")
                assert set(holders) <= {(), (keeper,)}, "another thread never has it"
                if holders == [(keeper,)] * 2:
                    break
                assert time.monotonic() < deadline, holders
            # A waiter that is awake at a scan has waited before, too.
            named_s = time.monotonic()
            for _ in range(20):
                began_s = time.monotonic()
                for thread in source.scan().threads:
                    wait = thread.waiting_for
                    if wait is not None and wait.holders:
                        assert wait.duration_s >= began_s - named_s
            until(lambda: GIL_ADVICE in details_of_gil(source.scan(resolve=True)), "the advice")
        (lock,) = [lock for lock in snapshot.locks if lock.holders]
        assert lock.holders == (keeper,)
        assert lock.name == "GIL of Python"
        assert not lock.idle


def details_of_gil(snapshot: Snapshot) -> str:
    """Return the details of the GIL in the words of the screen; "" without it."""
    index = SnapshotIndex(snapshot)
    gils = [lock for lock in snapshot.locks if lock.name == "GIL of Python"]
    lines = (unfolded(lock_details.lock_details(index, lock)) for lock in gils)
    return "\n".join(line_text(line) for each in lines for line in each)


def works_of(snapshot: Snapshot) -> dict[int, str]:
    """Return where the two threads that want the GIL wait, by tid."""
    index = SnapshotIndex(snapshot)
    return {
        thread.tid: short_location(frame)
        for thread in snapshot.threads
        if thread.name == "works" and (frame := index.wait_frame(thread)) is not None
    }


@both_ways
@pytest.mark.parametrize("python", PYTHONS)
def test_a_wait_for_the_gil_is_one_wait_in_python_code(python: str, prepared: bool) -> None:
    """Each of its calls ends after 5 ms, in functions of the interpreter."""
    command = [python, str(source_of("python_keeps_the_gil")), "keeps"]
    with Target(command, environment(prepared)) as target:
        target.line()
        deadline = time.monotonic() + PATIENCE_S
        with closing(attach(target.pid)) as source:
            lines: dict[int, str] = {}
            while list(lines.values()) != [_WORKS_AT] * 2:
                assert time.monotonic() < deadline, lines
                lines = works_of(source.scan())
            named_s, proved_s = time.monotonic(), 0.0
            while proved_s < 1.0:
                proved_s = time.monotonic() - named_s
                snapshot = source.scan()
                assert works_of(snapshot) == lines, "also while a waiter is awake"
        threads = {thread.tid: thread for thread in snapshot.threads}
        for thread in map(threads.__getitem__, lines):
            wait = thread.waiting_for
            assert wait is not None
            assert wait.duration_s >= proved_s
            assert wait.is_lower_bound
            assert thread.wait_share > thread.idle_share
        (lock,) = [lock for lock in snapshot.locks if lock.holders]
        assert lock.wait_max_s >= proved_s
        assert lock.wait_max_is_lower_bound
        assert lock.rates.wait > 0.0


@both_ways
@pytest.mark.parametrize("python", PYTHONS)
def test_a_stack_that_comes_late_has_its_python_functions(python: str, prepared: bool) -> None:
    """In the first scan, most waiters go on to the next call before their stacks can be read."""
    command = [python, str(source_of("python_keeps_the_gil")), "keeps"]
    with Target(command, environment(prepared)) as target:
        target.line()
        deadline = time.monotonic() + PATIENCE_S
        lines: dict[int, str] = {}
        while list(lines.values()) != [_WORKS_AT] * 2:
            assert time.monotonic() < deadline, lines
            with closing(attach(target.pid)) as source:
                lines = works_of(source.scan(resolve=True))


@both_ways
@pytest.mark.parametrize("python", PYTHONS)
def test_the_tree_of_blocked_threads_says_where_the_gil_is_kept(
    python: str, prepared: bool
) -> None:
    if glibc() >= _ENDS_IN_LIBFFI:
        pytest.skip("the stack of the holder ends in libffi (docs/runtimes.md)")
    command = [python, str(source_of("python_keeps_the_gil")), "keeps"]
    with Target(command, environment(prepared)) as target:
        target.line()
        deadline, line = time.monotonic() + PATIENCE_S, ""
        with closing(attach(target.pid)) as source:
            while not re.search(r"held >.*; now at keeps python_keeps_the_gil.py:23, in", line):
                assert time.monotonic() < deadline, line
                index = SnapshotIndex(source.scan())
                line = "".join(line_text(about_line(index, root)) for root in index.blocking.roots)


@pytest.mark.parametrize("python", PYTHONS)
def test_check_names_the_thread_that_keeps_the_gil(python: str) -> None:
    """The waiters are awake too often for their stacks to be read each time."""
    command = [python, str(source_of("python_keeps_the_gil")), "keeps"]
    with Target(command) as target:
        target.line()
        deadline = time.monotonic() + PATIENCE_S
        # On a busy host the waiters wait for a CPU most of the time.
        said = ""
        while "keeps holds it for at least" not in said:
            assert time.monotonic() < deadline, said
            done = tool.run("check", "-p", target.pid)
            said = " ".join(done.stdout.split())
            assert done.returncode == 0, said
        assert "for cond GIL of Python" in said
        assert "PyCOND_TIMEDWAIT" not in said


@both_ways
def test_a_thread_that_gives_the_gil_away_is_never_named(prepared: bool) -> None:
    """The near miss: all threads take the GIL again and again."""
    command = [PYTHON, str(source_of("python_keeps_the_gil")), "gives"]
    with Target(command, environment(prepared)) as target:
        target.line()
        with closing(attach(target.pid)) as source:
            for _ in range(20):
                snapshot = source.scan()
                assert not [each for each in waits_for(snapshot, "works") if each]
                assert not snapshot.deadlocks


def links_of(snapshot: Snapshot) -> set[tuple[str, str]]:
    """Return the names of waiters and holders of all deadlocks; a new thread has none yet."""
    names = {thread.tid: thread.name for thread in snapshot.threads}
    return {
        (names[edge.tid], names[edge.held_by])
        for deadlock in snapshot.deadlocks
        for edge in deadlock.cycle
    }


@both_ways
@pytest.mark.parametrize("python", PYTHONS)
def test_a_cycle_over_the_gil_is_called_while_another_thread_goes_on(
    python: str, prepared: bool, library: Path
) -> None:
    command = [python, str(source_of("python_gil_and_state_lock")), str(library), "sleeper"]
    with Target(command, environment(prepared)) as target:
        target.expect("ready")
        deadline = time.monotonic() + PATIENCE_S
        with closing(attach(target.pid)) as source:
            while links_of(snapshot := source.scan(resolve=True)) != LINKS:
                assert time.monotonic() < deadline, snapshot.deadlocks
        (deadlock,) = snapshot.deadlocks
        assert deadlock.certain
        done = tool.run("check", "-p", target.pid)
        assert done.returncode == 1, done.stdout
        assert "held by renderer" in done.stdout
