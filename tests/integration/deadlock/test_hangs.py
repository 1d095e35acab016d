"""A process whose threads all wait for each other hangs for certain, whoever holds the locks."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from support.targets import PATIENCE_S, Target

from locktop.collector.linux import procfs
from locktop.collector.model import Snapshot
from locktop.collector.render.text import report
from locktop.collector.render.words import verdict
from locktop.collector.sources.attach import attach

Start = Callable[..., Target]

#: Whether something else may end a wait: the ways of hang_near_misses.c.
OPEN = ["server", "handler", "pipe", "timed", "other_process", "sleep", "comes"]
_SCANS = 3


@pytest.fixture(params=["prepared", "unprepared"])
def start(request: pytest.FixtureRequest) -> Start:
    """Start a target with the library, and without it."""
    name = "start_target" if request.param == "prepared" else "start_unprepared"
    fixture: Start = request.getfixturevalue(name)
    return fixture


@contextmanager
def asleep(target: Target) -> Iterator[Callable[[], Snapshot]]:
    """Wait until all threads of a target sleep; give the scan."""
    deadline = time.monotonic() + PATIENCE_S
    while not all(
        procfs.thread_stat(target.pid, tid).state == "S" for tid in procfs.tids(target.pid)
    ):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    with closing(attach(target.pid)) as source:
        yield lambda: source.scan(resolve=True)


#: Traces the threads of a process without stopping them, until a line comes.
_DEBUGGER = """
import ctypes, os, sys
for tid in os.listdir(f"/proc/{sys.argv[1]}/task"):
    assert ctypes.CDLL(None).ptrace(0x4206, int(tid), None, None) == 0
print("traced", flush=True)
sys.stdin.readline()
"""


@contextmanager
def debugged(target: Target) -> Iterator[None]:
    """Trace all threads of a target, as a debugger does."""
    with Target([sys.executable, "-c", _DEBUGGER, str(target.pid)]) as debugger:
        debugger.expect("traced")
        yield


def test_threads_that_wait_for_each_other_hang(start: Start) -> None:
    target = start("hang_near_misses", "nobody")
    target.expect("ready")
    with asleep(target) as scan:
        snapshot = scan()
    assert snapshot.hang is not None
    assert (snapshot.hang.certain, snapshot.hang.doubt) == (True, "")
    assert sorted(snapshot.hang.tids) == sorted(procfs.tids(target.pid))
    assert verdict.is_deadlocked(snapshot)
    line = verdict.line(snapshot)
    assert line.startswith("deadlock: all 3 threads of hang_near_misse")
    assert "g_work in work (hang_near_misses.c:" in line
    assert "HANG: all 3 threads wait for each other" in report.render(snapshot)


@pytest.mark.parametrize("way", OPEN)
def test_a_wait_that_something_else_may_end_is_no_hang(way: str, start: Start) -> None:
    target = start("hang_near_misses", way)
    target.expect("ready")
    with asleep(target) as scan:
        snapshots = [scan() for _ in range(_SCANS)]
    assert [snapshot.hang for snapshot in snapshots] == [None] * _SCANS
    assert not any(map(verdict.is_doubtful, snapshots))


def test_a_thread_that_waits_later_closes_the_hang(start: Start) -> None:
    target = start("hang_near_misses", "comes")
    target.expect("ready")
    with asleep(target) as scan:
        assert scan().hang is None
        target.go_on()
        deadline = time.monotonic() + PATIENCE_S
        while (hang := scan().hang) is None:
            assert time.monotonic() < deadline
    assert hang.certain


def test_a_handler_makes_a_hang_doubtful(start: Start) -> None:
    target = start("hang_near_misses", "handler_of_lock")
    target.expect("ready")
    with asleep(target) as scan:
        hang = scan().hang
    assert hang is not None
    assert (hang.certain, hang.doubt) == (False, "a handler of SIGTERM may wake a thread")


def test_io_uring_makes_a_hang_doubtful(start: Start) -> None:
    """Since Linux 6.7 io_uring can wake the waiters at a futex word."""
    target = start("hang_near_misses", "io_uring")
    if target.line() == "none":
        pytest.skip("the kernel refuses io_uring")
    with asleep(target) as scan:
        hang = scan().hang
    assert hang is not None
    assert (hang.certain, hang.doubt) == (False, "io_uring may wake a thread")


def test_a_debugger_makes_a_hang_doubtful(start: Start) -> None:
    target = start("hang_near_misses", "nobody")
    target.expect("ready")
    with debugged(target), asleep(target) as scan:
        hang = scan().hang
    assert hang is not None
    assert (hang.certain, hang.doubt) == (False, "a debugger may change the process")
    with asleep(target) as scan:
        hang = scan().hang
    assert hang is not None
    assert hang.certain, "the debugger has gone"


def test_a_word_that_has_changed_is_noted(start: Start) -> None:
    target = start("atomic_without_notify")
    target.expect("ready")
    with asleep(target) as scan:
        snapshot = scan()
    assert snapshot.hang is not None
    assert set(snapshot.hang.changed_words.values()) == {3}
    assert len(snapshot.hang.changed_words) == 3
    assert "(3 already: nobody woke it)" in verdict.line(snapshot)


def test_a_full_pipe_that_no_other_process_reads_makes_a_doubtful_hang(start: Start) -> None:
    target = start("stdout_lock_before_full_pipe")
    target.expect("ready")
    with asleep(target) as scan:
        deadline = time.monotonic() + PATIENCE_S
        while (hang := scan().hang) is None:
            assert time.monotonic() < deadline
    assert not hang.certain
    assert [call.partition("(")[0] for call in hang.calls.values()] == ["write"]
    pipe = Path(f"/proc/{target.pid}/fd/1").readlink()
    assert hang.doubt == f"something else reads from descriptor 1, {pipe}"
