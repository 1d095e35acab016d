"""Work as a user without rights."""

from __future__ import annotations

import os
import pickle
import traceback
from collections.abc import Callable
from typing import Any

NOBODY = 65534


def as_nobody(work: Callable[[], Any]) -> Any:
    """Run ``work`` in a process of user "nobody", and return its result.

    A test that does not run as root calls ``work`` directly. The caller imports all modules that
    ``work`` needs: "nobody" may not read the files of root's Python.
    """
    if os.geteuid() != 0:
        return work()
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
