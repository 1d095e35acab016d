"""Each interpreter of this machine: which waits are for a lock, and the functions that wait.

docs/runtimes.md has a table of the interpreters; what it says of one is checked here.
"""

from __future__ import annotations

import json
import re
import time
from contextlib import closing
from pathlib import Path

import pytest
from support import tool
from support.pythons import all_pythons, has_mutexes, version
from support.targets import PATIENCE_S, Target, source_of

from locktop.collector.model import Snapshot
from locktop.collector.render.words import verdict
from locktop.collector.sources.attach import attach
from locktop.collector.sources.launch import preload_environment

PYTHONS = all_pythons()
PAGE = Path(__file__).parents[3] / "docs" / "runtimes.md"
#: By way: whether the thread waits for a lock, and a Python function of its stack.
EXPECTED = {
    "pool": (False, "_worker"),
    "queue": (False, "get"),
    "event": (False, "wait"),
    "join": (False, "join"),
    "sleep": (False, "<lambda>"),
    "lock": (True, "takes_lock"),
    "rlock": (True, "takes_owned"),
    "sort": (True, "by_key"),
}
#: The innermost function of a wait for a lock is Python's, so the lock is named after it.
NAMES = {
    "lock": r"Lock in (takes_lock|by_key) \(python_waits_of_all_kinds.py:\d+\)",
    "rlock": r"Lock in takes_owned \(python_waits_of_all_kinds.py:\d+\)",
}
both_ways = pytest.mark.parametrize("prepared", [True, False], ids=["prepared", "unprepared"])


def described(snapshot: Snapshot, ways: dict[int, str]) -> dict[str, tuple[bool, str]]:
    """Return by way whether the thread waits for a lock, and the expected function.

    The function is that of EXPECTED only if the thread's stack has it.
    """
    result = {}
    for thread in snapshot.threads:
        way = ways.get(thread.tid)
        if way is not None:
            wait = thread.waiting_for
            functions = [f.function for f in snapshot.stacks.get(thread.stack, ())]
            wanted = EXPECTED[way][1]
            is_contended = wait is not None and not wait.idle
            result[way] = is_contended, wanted if wanted in functions else str(functions)
    return result


def wrong_names(snapshot: Snapshot, ways: dict[int, str]) -> list[str]:
    """Return the names of the locks of NAMES that are not as they should be."""
    names = {lock.id: lock.name for lock in snapshot.locks}
    waits = [(ways.get(t.tid, ""), t.waiting_for) for t in snapshot.threads if t.waiting_for]
    pairs = [(NAMES[way], names[wait.lock]) for way, wait in waits if way in NAMES]
    return [name for pattern, name in pairs if not re.fullmatch(pattern, name)]


@both_ways
@pytest.mark.parametrize("python", PYTHONS)
def test_waits_for_locks_and_for_work_are_distinguished(python: str, prepared: bool) -> None:
    command = [python, str(source_of("python_waits_of_all_kinds"))]
    with Target(command, preload_environment(None) if prepared else None) as target:
        ways = {int(tid): way for tid, way in target.truth().items()}
        deadline = time.monotonic() + PATIENCE_S
        with closing(attach(target.pid)) as source:
            while True:
                snapshot = source.scan(resolve=True)
                result = described(snapshot, ways)
                unnamed = wrong_names(snapshot, ways)
                if result == EXPECTED and not unnamed:
                    break
                assert time.monotonic() < deadline, (result, unnamed)
                time.sleep(0.02)  # leaves the CPU to the reader of Python's frames


@both_ways
@pytest.mark.parametrize("python", PYTHONS)
def test_a_lock_of_processes_is_no_lock_of_threads(python: str, prepared: bool) -> None:
    command = [python, str(source_of("python_lock_of_processes"))]
    with Target(command, preload_environment(None) if prepared else None) as target:
        waiters = json.loads(target.line())
        with closing(attach(target.pid)) as source:
            snapshot = source.scan(resolve=True)
    names = {lock.id: lock.name for lock in snapshot.locks}
    waits = [thread.waiting_for for thread in snapshot.threads if thread.tid in waiters]
    found = [names[wait.lock] for wait in waits if wait is not None]
    assert len(found) == len(waiters)
    assert not [name for name in found if name.startswith("Lock")], found


@pytest.mark.parametrize("python", [python for python in PYTHONS if has_mutexes(python)])
@both_ways
def test_a_deadlock_of_mutexes_is_never_no_deadlock(python: str, prepared: bool) -> None:
    """Nobody knows the holders, so the answer is "cannot tell" as soon as the waits are long."""
    command = [python, str(source_of("python_locks_deadlock")), "crossed"]
    with Target(command, preload_environment(None) if prepared else None) as target:
        target.line(), target.line()
        if prepared:  # then the length of a wait is known, and `check` does not wait for it
            with closing(attach(target.pid)) as source:
                while not verdict.unknown_waits(source.scan(resolve=True)):
                    time.sleep(0.1)
        done = tool.run("check", "-p", target.pid)
        assert (done.returncode, "crosses at" in done.stdout) == (3, True), done.stdout


@pytest.mark.parametrize("python", PYTHONS)
def test_the_table_says_what_the_locks_are(python: str) -> None:
    rows = re.findall(r"^\| (3\.[^|]*?) \| [^|]* \| (semaphore|`PyMutex`) ", PAGE.read_text(), re.M)
    kinds = [kind for versions, kind in rows if is_among(version(python), versions)]
    assert ("`PyMutex`" if has_mutexes(python) else "semaphore") in kinds, rows


@pytest.mark.parametrize("python", PYTHONS)
def test_the_doctor_says_what_is_visible_of_an_interpreter(python: str) -> None:
    command = [python, str(source_of("python_waits_of_all_kinds"))]
    with Target(command) as target:
        target.truth()
        done = tool.run("doctor", "-p", target.pid, "--format", "json")
    checks = [check for check in json.loads(done.stdout)["checks"] if check["name"] == "python"]
    names = [re.match(r"CPython (\d+)\.(\d+)", check["fact"]) for check in checks]
    assert [tuple(map(int, name.groups())) for name in names if name] == [version(python)]
    assert ("who holds" in checks[0]["fact"]) == has_mutexes(python), checks


def is_among(number: tuple[int, ...], text: str) -> bool:
    """Return whether a minor version is among "3.8 to 3.12", or is that of "3.13.5"."""
    ends = [tuple(map(int, part)) for part in re.findall(r"(\d+)\.(\d+)", text)]
    return ends[0] <= number <= ends[-1]
