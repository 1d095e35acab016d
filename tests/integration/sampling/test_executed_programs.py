"""Programs that execute another program, or whose file is replaced, while they are sampled."""

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


def test_a_program_that_is_executed_meanwhile(start_unprepared: StartTarget) -> None:
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


def test_the_same_program_executed_again() -> None:
    """Nothing is left of the locks that it had."""
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


def test_a_program_whose_file_is_replaced(compiler: Compiler, tmp_path: Path) -> None:
    """It is still the one that it was."""
    copy = shutil.copy(compiler.program("scripted_threads"), tmp_path)
    with Target([copy, "stay", "lock a, meet 1, stay", "meet 1, lock a"]) as target:
        target.truth()
        with closing(attach(target.pid)) as source:
            before = until(source, lambda seen: bool(seen.locks))
            Path(copy).unlink()
            after = source.scan()
    assert after.duration_s > before.duration_s
    assert after.locks[0].wait_s >= before.locks[0].wait_s > 0


def test_threads_that_come_and_go_do_no_harm(start_unprepared: StartTarget) -> None:
    target = start_unprepared("thread_exit_destructors")
    with closing(attach(target.pid)) as source:
        for _ in range(30):
            seen = source.scan()
            assert seen.deadlocks == ()
            assert len({thread.tid for thread in seen.threads}) == len(seen.threads)


def test_python_of_its_own_interpreter() -> None:
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
    assert kinds == {Kind.SEM}, "its locks are semaphores, which say nothing of who has them"
    assert not any(found.certain for found in seen.deadlocks)


def until(source: Source, is_so: Callable[[Snapshot], bool]) -> Snapshot:
    """Look until it is so."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so(seen := source.scan(resolve=True)):
        assert time.monotonic() < deadline
    return seen
