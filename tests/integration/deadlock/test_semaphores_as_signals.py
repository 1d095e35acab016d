"""A semaphore used as a signal is not reported as a lock in a certain deadlock."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack, closing
from pathlib import Path

from support.scans import settle
from support.targets import PATIENCE_S, StartTarget, Target, source_of

from locktop.collector.model import Snapshot
from locktop.collector.sources.attach import attach
from locktop.collector.sources.launch import preload_environment

WAYS = (
    "event", "jobs", "simple_queue", "simple_queue_of_one", "import_lock", "signal",
    "signal_after_use", "signal_to_itself", "signal_of_one_that_ended",
)  # fmt: skip
PYTHONS = [python for python in (sys.executable, "/usr/bin/python3") if Path(python).exists()]
SCANS = 40


def settled(target: Target, tid: int) -> dict[bool, Snapshot]:
    """Scan until a thread has waited long enough (scans.SETTLED_S).

    Return a snapshot without names (False), and one with all names (True).
    """
    with closing(attach(target.pid)) as source:
        settle(source, tid)
        return {resolve: source.scan(resolve) for resolve in (False, True)}


def test_locks_that_python_uses_as_signals_are_in_no_certain_deadlock() -> None:
    with ExitStack() as stack:
        running: list[tuple[str, Target]] = []
        for python in PYTHONS:
            for way in WAYS:
                command = [python, str(source_of("python_locks_as_signals")), way]
                running.append((way, Target(command, preload_environment(None))))
                stack.callback(running[-1][1].stop)
        certain = {}
        for way, target in running:
            target.expect("ready")  # the library is loaded
            for resolve, seen in settled(target, target.pid).items():
                certain[way, target.pid, resolve] = any(found.certain for found in seen.deadlocks)
        assert not [which for which, is_certain in certain.items() if is_certain]
        for _, target in running:
            target.go_on()
            target.expect("ok")


def test_a_thread_that_left_its_wait_by_longjmp_is_in_no_deadlock(
    start_target: StartTarget,
) -> None:
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


def test_the_holder_of_a_destroyed_semaphore_holds_no_later_one_at_its_address(
    start_target: StartTarget,
) -> None:
    target = start_target("semaphore_destroyed_while_held")
    former_holder = int(target.line())
    with closing(attach(target.pid)) as source:
        for _ in range(SCANS):
            seen = source.scan()
            assert not any(former_holder in lock.holders for lock in seen.locks)
            assert not any(thread.holds for thread in seen.threads if thread.tid == former_holder)
