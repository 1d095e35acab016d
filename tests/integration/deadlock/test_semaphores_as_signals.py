"""Semaphores that look like locks which threads keep, and are none: nothing untrue is told."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack, closing
from pathlib import Path

from support.targets import PATIENCE_S, StartTarget, Target, source_of

from locktop.collector.model import Snapshot
from locktop.collector.sources.attach import attach
from locktop.collector.sources.launch import preload_environment

WAYS = (
    "event", "jobs", "simple_queue", "signal", "signal_to_itself", "signal_of_one_that_ended",
)  # fmt: skip
PYTHONS = [python for python in (sys.executable, "/usr/bin/python3") if Path(python).exists()]
#: Also what is not certain is told then.
SETTLED_S = 1.2
SCANS = 40


def settled(target: Target, tid: int, resolve: bool) -> Snapshot:
    """Look until a thread has waited for a while."""
    deadline = time.monotonic() + PATIENCE_S
    with closing(attach(target.pid)) as source:
        while True:
            seen = source.scan(resolve)
            wait = next(thread.waiting_for for thread in seen.threads if thread.tid == tid)
            if wait is not None and wait.duration_s > SETTLED_S:
                return source.scan(resolve)
            assert time.monotonic() < deadline, wait
            time.sleep(0.1)


def test_locks_of_python_got_to_wait_for_another_thread() -> None:
    with ExitStack() as stack:
        running: list[tuple[str, Target]] = []
        for python in PYTHONS:
            for way in WAYS:
                command = [python, str(source_of("python_locks_as_signals")), way]
                running.append((way, Target(command, preload_environment(None))))
                stack.callback(running[-1][1].stop)
        told = {}
        for way, target in running:
            target.expect("ready")  # it has the library
            for resolve in (False, True):
                seen = settled(target, target.pid, resolve)
                told[way, target.pid, resolve] = any(found.certain for found in seen.deadlocks)
        assert not [which for which, certain in told.items() if certain]
        for _, target in running:
            target.go_on()
            target.expect("ok")


def test_a_wait_that_was_left_by_a_jump(start_target: StartTarget) -> None:
    target = start_target("longjmp_out_of_wait")
    target.expect("gave up")
    with closing(attach(target.pid)) as source:
        deadline = time.monotonic() + PATIENCE_S
        while not any(
            thread.waiting_for is not None and thread.tid != target.pid
            for thread in source.scan().threads
        ):
            assert time.monotonic() < deadline
        assert [source.scan().deadlocks for _ in range(3)] == [(), (), ()]
    target.go_on()
    target.expect("ok")


def test_who_left_one_that_it_had_has_none_that_others_use(start_target: StartTarget) -> None:
    target = start_target("semaphore_destroyed_while_held")
    leaver = int(target.line())
    with closing(attach(target.pid)) as source:
        for _ in range(SCANS):
            seen = source.scan()
            assert not any(leaver in lock.holders for lock in seen.locks)
            assert not any(thread.holds for thread in seen.threads if thread.tid == leaver)
