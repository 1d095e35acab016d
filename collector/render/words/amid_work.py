"""Waits amid work: a thread waits for a signal deep inside the program's own functions.

A thread of a pool waits for work near its first function, and the measure is in docs/idle.md. None
of 330 such waits had more than 7 functions of the program on its stack. Sessions of MariaDB that
waited for a commit had 17 to 22. No rule can say what such a wait is for, so it is no contention.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from locktop.collector.analysis.idle.rules import names_by_kind_alone
from locktop.collector.model import Frame, Snapshot, Thread
from locktop.collector.model.frames import is_library_wrapper, is_standard_library
from locktop.collector.model.kinds import FOR_THREADS_KINDS
from locktop.collector.symbols.python.interpreter import is_interpreter_module

#: A wait is amid work from so many functions of the program on its stack on.
MIN_FUNCTIONS = 10


def waiters(snapshot: Snapshot) -> list[Thread]:
    """Return the threads that wait amid work, the longest wait first."""
    waiting = [thread for thread in snapshot.threads if _is_amid_work(snapshot, thread)]
    return sorted(waiting, key=_longest_first)


def _is_amid_work(snapshot: Snapshot, thread: Thread) -> bool:
    wait = thread.waiting_for if thread.alive else None
    if wait is None or not wait.idle or wait.kind in FOR_THREADS_KINDS:
        return False
    if snapshot.why.get(thread.tid) not in names_by_kind_alone():
        return False
    stack = snapshot.stacks.get(wait.stack, ())
    return len(stack) >= MIN_FUNCTIONS and _is_deep(stack)


def _is_deep(stack: Sequence[Frame]) -> bool:
    """Return whether enough frames of a stack are functions of the program itself.

    Frames of libraries of locks, of standard libraries and of interpreters do not count. A mark
    where a stack was cut is no function either. Each scan does this for all idle threads, so the
    first of many functions have to do.
    """
    return next(islice(filter(_is_own, stack), MIN_FUNCTIONS - 1, None), None) is not None


def _is_own(frame: Frame) -> bool:
    return bool(frame.module) and not (
        is_library_wrapper(frame)
        or is_standard_library(frame)
        or is_interpreter_module(frame.module)
    )


def _longest_first(thread: Thread) -> float:
    return -thread.waiting_for.duration_s if thread.waiting_for is not None else 0.0
