"""A thread that was let go and does not run yet still shows its wait: that is no deadlock."""

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
    """A thread that a debugger stops."""
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
    """A thread that gets the rest of one CPU, which leaves none."""
    (cpu, *_) = sorted(os.sched_getaffinity(0))
    before = os.sched_getaffinity(tid)
    os.sched_setaffinity(tid, {cpu})
    os.sched_setscheduler(tid, os.SCHED_IDLE, os.sched_param(0))
    with ExitStack() as stack:
        for _ in range(_HOGS):
            code = (
                f"import os\nos.sched_setaffinity(0, {{{cpu}}})\nprint(flush=True)\nwhile 1: pass"
            )
            hog = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
            stack.callback(hog.wait)
            stack.callback(hog.kill)
            assert hog.stdout is not None
            hog.stdout.readline()
        try:
            yield
        finally:
            # It may have ended all the same; some users may not take that back.
            with suppress(ProcessLookupError, PermissionError):
                os.sched_setaffinity(tid, before)
                os.sched_setscheduler(tid, os.SCHED_OTHER, os.sched_param(0))


@pytest.mark.parametrize("kept", [stopped, queued])
@pytest.mark.parametrize("way", WAYS)
def test_who_was_let_go(
    way: str, kept: Callable[[int], AbstractContextManager[None]], start_unprepared: StartTarget
) -> None:
    target = start_unprepared("wakes_holder_then_wants_lock", way)
    tids = target.truth()
    with closing(attach(target.pid)) as source:
        scans_until(source, lambda seen: waits(seen, tids["first"]))
        with kept(tids["first"]):
            target.go_on()
            target.expect("going")
            for _ in range(_SCANS):
                assert source.scan().deadlocks == ()
        scans_until(source, lambda seen: seen.ended)
    assert target.finish() == (0, ["ok"])


def waits(seen: Snapshot, tid: int) -> bool:
    return any(thread.tid == tid and thread.waiting_for for thread in seen.threads)


def scans_until(source: Source, is_so: Callable[[Snapshot], bool]) -> None:
    """Look until it is so."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so(source.scan()):
        assert time.monotonic() < deadline
