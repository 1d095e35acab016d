"""Sampled programs that execute another program, or whose file is replaced."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from support.targets import PATIENCE_S, Compiler, StartTarget, Target

from locktop.collector.model import Kind, Snapshot
from locktop.collector.sources.attach import attach
from locktop.collector.sources.base import Source


def test_a_source_follows_its_process_into_another_program(start_unprepared: StartTarget) -> None:
    with (
        subprocess.Popen(
            ["sh", "-c", "read line; exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as shell,
        closing(attach(shell.pid)) as source,
    ):
        assert source.scan().process.comm == "sh"
        assert shell.stdin is not None
        shell.stdin.write(b"\n")
        shell.stdin.flush()
        until(source, lambda seen: seen.process.comm == "cat")
        shell.stdin.close()
        shell.wait()
        ended = source.scan()
        assert ended.ended
        assert source.scan() == ended


def test_a_process_that_executes_its_own_program_again_has_none_of_the_old_locks() -> None:
    code = (
        "import os, sys, threading\n"
        "lock = threading.Lock()\n"
        "lock.acquire()\n"
        "threading.Thread(target=lock.acquire, daemon=True).start()\n"
        "print('ready', flush=True)\n"
        "input()\n"
        "again = 'print(\"again\", flush=True); input()'\n"
        "os.execv(sys.executable, [sys.executable, '-c', again])\n"
    )
    with Target([sys.executable, "-c", code]) as target, closing(attach(target.pid)) as source:
        target.expect("ready")
        until(source, lambda seen: bool(seen.locks))
        target.go_on()
        target.expect("again")
        assert source.scan().locks == ()


def test_a_program_whose_file_was_removed_keeps_its_figures(
    compiler: Compiler, tmp_path: Path
) -> None:
    copy = shutil.copy(compiler.program("scripted_threads"), tmp_path)
    with Target([copy, "stay", "lock a, meet 1, stay", "meet 1, lock a"]) as target:
        target.truth()
        with closing(attach(target.pid)) as source:
            before = until(source, lambda seen: bool(seen.locks))
            Path(copy).unlink()
            after = source.scan()
    assert after.duration_s > before.duration_s
    assert after.locks[0].wait_s >= before.locks[0].wait_s > 0


def test_threads_that_come_and_go_appear_once_and_in_no_deadlock(
    start_unprepared: StartTarget,
) -> None:
    target = start_unprepared("thread_exit_destructors")
    with closing(attach(target.pid)) as source:
        for _ in range(30):
            seen = source.scan()
            assert seen.deadlocks == ()
            assert len({thread.tid for thread in seen.threads}) == len(seen.threads)


def test_a_deadlock_of_python_locks_is_not_certain_without_the_library() -> None:
    code = (
        "import threading\n"
        "a, b = threading.Lock(), threading.Lock()\n"
        "def run(x, y, both):\n"
        "    with x:\n"
        "        both.wait()\n"
        "        y.acquire()\n"
        "both = threading.Barrier(3)\n"
        "for x, y in ((a, b), (b, a)):\n"
        "    threading.Thread(target=run, args=(x, y, both), daemon=True).start()\n"
        "both.wait()\n"
        "print('ready', flush=True)\n"
        "input()\n"
    )
    with Target([sys.executable, "-c", code]) as target:
        target.expect("ready")
        with closing(attach(target.pid)) as source:
            seen = until(
                source, lambda seen: sum(t.waiting_for is not None for t in seen.threads) >= 2
            )
    kinds = {thread.waiting_for.kind for thread in seen.threads if thread.waiting_for}
    assert kinds == {Kind.SEM}, "Python's locks are semaphores, which have no owner"
    assert not any(found.certain for found in seen.deadlocks)


def until(source: Source, reached: Callable[[Snapshot], bool]) -> Snapshot:
    """Scan until ``reached`` is true of a snapshot; return that one."""
    deadline = time.monotonic() + PATIENCE_S
    while not reached(seen := source.scan(resolve=True)):
        assert time.monotonic() < deadline
    return seen
