"""Work as a user without rights."""

from __future__ import annotations

import os
import pickle
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

from support.targets import PATIENCE_S

NOBODY = 65534


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
    """Wait until this is the only thread: a lock of another thread stays locked in the child.

    The threads of a closed source end soon after.
    """
    deadline = time.monotonic() + PATIENCE_S
    while threading.active_count() > 1:
        assert time.monotonic() < deadline, threading.enumerate()
        time.sleep(0.001)
