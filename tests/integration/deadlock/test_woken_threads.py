"""A woken thread that has no CPU yet still shows its wait, and is in no deadlock."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress

import pytest
from support.targets import PATIENCE_S, StartTarget

from locktop.collector.model import Snapshot
from locktop.collector.sources.attach import attach
from locktop.collector.sources.base import Source

WAYS = ("barrier", "sem", "cond", "join", "mutex", "inherit", "rwlock")
_SEIZE, _INTERRUPT, _DETACH = 0x4206, 0x4207, 17  # ptrace(2)
#: Occupies the CPU of its argument, after one line of output.
HOG = """\
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
print(flush=True)
while True:
    pass
"""
_HOGS = 3
_SCANS = 12


@contextmanager
def stopped(tid: int) -> Iterator[None]:
    """Stop a thread as a debugger does."""
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
    for request in (_SEIZE, _INTERRUPT):
        assert ptrace(request, tid, None, None) == 0, os.strerror(ctypes.get_errno())
    os.waitpid(tid, 0x40000000)  # __WALL
    try:
        yield
    finally:
        assert ptrace(_DETACH, tid, None, None) == 0


@contextmanager
def queued(tid: int) -> Iterator[None]:
    """Leave a thread only the idle time of one CPU, and occupy that CPU."""
    (cpu, *_) = sorted(os.sched_getaffinity(0))
    before = os.sched_getaffinity(tid)
    os.sched_setaffinity(tid, {cpu})
    os.sched_setscheduler(tid, os.SCHED_IDLE, os.sched_param(0))
    with ExitStack() as stack:
        for _ in range(_HOGS):
            hog = subprocess.Popen([sys.executable, "-c", HOG, str(cpu)], stdout=subprocess.PIPE)
            stack.callback(hog.wait)
            stack.callback(hog.kill)
            assert hog.stdout is not None
            hog.stdout.readline()
        try:
            yield
        finally:
            # The thread may have ended, and some users may not raise the priority again.
            with suppress(ProcessLookupError, PermissionError):
                os.sched_setaffinity(tid, before)
                os.sched_setscheduler(tid, os.SCHED_OTHER, os.sched_param(0))


@pytest.mark.parametrize("delayed", [stopped, queued])
@pytest.mark.parametrize("way", WAYS)
def test_a_woken_thread_is_in_no_deadlock(
    way: str, delayed: Callable[[int], AbstractContextManager[None]], start_unprepared: StartTarget
) -> None:
    target = start_unprepared("wakes_holder_then_wants_lock", way)
    tids = target.truth()
    with closing(attach(target.pid)) as source:
        scans_until(source, lambda seen: waits(seen, tids["first"]))
        with delayed(tids["first"]):
            target.go_on()
            target.expect("going")
            for _ in range(_SCANS):
                assert source.scan().deadlocks == ()
        scans_until(source, lambda seen: seen.ended)
    assert target.finish() == (0, ["ok"])


def waits(seen: Snapshot, tid: int) -> bool:
    return any(thread.tid == tid and thread.waiting_for for thread in seen.threads)


def scans_until(source: Source, reached: Callable[[Snapshot], bool]) -> None:
    """Scan until ``reached`` is true of a snapshot."""
    deadline = time.monotonic() + PATIENCE_S
    while not reached(source.scan()):
        assert time.monotonic() < deadline
