"""Work as a user without rights."""

from __future__ import annotations

import os
import pickle
import stat
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from support.targets import PATIENCE_S, TARGETS

NOBODY = 65534
#: Readings in a row without a change.
_IDLE_READINGS = 4


def need_open_checkout() -> None:
    """Skip a test in which another user runs locktop, if that user may not read the checkout."""
    if not all(directory.stat().st_mode & stat.S_IXOTH for directory in TARGETS.parents):
        pytest.skip("other users may not read this checkout")


def as_nobody(work: Callable[[], Any]) -> Any:
    """Run ``work`` in a process of user "nobody", and return its result.

    A test that does not run as root calls ``work`` directly. The caller imports all modules that
    ``work`` needs: "nobody" may not read the files of root's Python.
    """
    if os.geteuid() != 0:
        return work()
    _wait_for_other_threads()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            answer: tuple[bool, Any] = True, work()
        except BaseException:
            answer = False, traceback.format_exc()
        try:
            with os.fdopen(writing, "wb") as pipe:
                pickle.dump(answer, pipe)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        done, result = pickle.load(pipe)
    os.waitpid(child, 0)
    if not done:
        raise AssertionError(result)
    return result


def _wait_for_other_threads() -> None:
    """Wait until all other threads are idle: a lock of another thread stays locked in the child.

    The threads of a closed source end soon after. A thread that waits for work holds no lock.
    """
    deadline = time.monotonic() + PATIENCE_S
    before, idle = _switches(), 0
    while idle < _IDLE_READINGS:
        assert time.monotonic() < deadline, threading.enumerate()
        time.sleep(0.005)
        now = _switches()
        idle = idle + 1 if now == before else 0
        before = now


def _switches() -> dict[str, str]:
    """Return by tid how often each other thread has left a processor."""
    own, status_by_tid = threading.get_native_id(), {}
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # the thread has ended
            if int(task.name) != own:
                status_by_tid[task.name] = (
                    (task / "status").read_text().split("voluntary_ctxt_switches")[1]
                )
    return status_by_tid
