"""The holder of a lock that is in no held list, as the waiters noted it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest
from support.targets import PATIENCE_S, StartTarget

from locktop.collector.linux.threads import KernelThreads
from locktop.collector.sources.attach import attach


def test_a_noted_holder_does_not_count_if_a_waiter_is_awake(
    start_target: StartTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine a woken waiter may get no CPU for a while. The lock is free then."""
    target = start_target("locks_across_level_switch")
    target.expect("taken")
    source = attach(target.pid)
    try:
        # The switch empties the held lists.
        source.set_level("dormant")
        source.set_level("contended")

        def holders() -> tuple[int, ...]:
            (lock,) = [lock for lock in source.scan(resolve=True).locks if lock.name == "g_met"]
            assert len(lock.waiters) == 1
            return lock.holders

        deadline = time.monotonic() + PATIENCE_S
        while holders() != (target.pid,):
            assert time.monotonic() < deadline
        monkeypatch.setattr(KernelThreads, "are_asleep", lambda *_: False)
        assert holders() == ()
    finally:
        source.close()


def test_a_thread_that_runs_is_not_asleep() -> None:
    with subprocess.Popen([sys.executable, "-c", "print(flush=True)\nwhile True: pass"],
                          stdout=subprocess.PIPE) as busy:  # fmt: skip
        assert busy.stdout is not None
        busy.stdout.readline()
        tasks = KernelThreads(busy.pid, busy.pid)
        try:
            deadline = time.monotonic() + PATIENCE_S
            while tasks.are_asleep([busy.pid]):
                assert time.monotonic() < deadline
        finally:
            tasks.close()
            busy.kill()
    tasks = KernelThreads(os.getpid(), os.getpid())
    release, sleeper = threading.Event(), threading.Thread(target=lambda: release.wait())
    sleeper.start()
    try:
        assert sleeper.native_id is not None
        deadline = time.monotonic() + PATIENCE_S
        while not tasks.are_asleep([sleeper.native_id]):
            assert time.monotonic() < deadline
        assert not tasks.are_asleep([sleeper.native_id, os.getpid()]), "this thread runs"
    finally:
        release.set()
        sleeper.join()
        tasks.close()
