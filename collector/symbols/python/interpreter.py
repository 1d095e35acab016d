"""Which frames of a native stack belong to CPython, and which of these run Python functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from locktop.collector.model import Frame
from locktop.collector.model.frames import is_library_wrapper

#: The base names of CPython's files: ``python3.14``, ``python3.13t``, ``libpython3.11.so.1.0``. The
#: symbols of a stripped interpreter do not tell where Python code runs, its file does.
_MODULE = re.compile(r"(?:lib)?python3(?:\.\d+)?[a-z]*(?:-[a-z]+)?(?:\.so(?:\.[\d.]+)?)?$")
_EVALUATION = "_PyEval_EvalFrameDefault"
#: An interpreter of tail calls runs each instruction in a function of its own (3.14, ceval.c).
_TAIL_CALL = "_TAIL_CALL_"
#: Functions in which a thread waits for a lock of Python. They run no Python function themselves.
#: From 3.13 on, each wait for a PyMutex has a semaphore of its own (parking_lot.c).
_PER_WAIT = ("_PyParkingLot_Park", "_PySemaphore_", "_PyMutex_Lock", "PyEvent_Wait")
_LOCK = ("PyThread_acquire_lock", *_PER_WAIT)
_ATTACH = ("tstate_wait_attach", "_PyThreadState_Attach")
_CRITICAL_SECTION = "_PyCriticalSection"
_INTERPRETER_LOCK = ("PyEval_RestoreThread", "PyEval_AcquireThread", "PyGILState_Ensure")


@lru_cache(maxsize=1024)
def is_interpreter_module(module: str) -> bool:
    """Return whether a module, by its base name, is CPython or its library."""
    return _MODULE.match(module) is not None


def is_interpreter(frame: Frame) -> bool:
    """Return whether a frame belongs to CPython, which may also be part of another program."""
    return is_interpreter_module(frame.module) or is_evaluation(frame) or is_instruction(frame)


def is_evaluation(frame: Frame) -> bool:
    """Return whether a frame is the function that runs Python functions."""
    # A part that the compiler separated, or a copy, has a suffix: ".cold".
    return frame.function.partition(".")[0] == _EVALUATION


def is_instruction(frame: Frame) -> bool:
    """Return whether a frame is an instruction of an interpreter of tail calls."""
    return frame.function.startswith(_TAIL_CALL)


def waits_for_lock(frame: Frame) -> bool:
    """Return whether a thread waits in this function for a lock of Python.

    The compiler may take off the name of such a function; then it is a nameless one of the
    interpreter.
    """
    if frame.function:
        return frame.function.startswith(_LOCK)
    return is_interpreter_module(frame.module)


def waits_for_object(frames: Iterable[Frame]) -> bool:
    """Return whether a stack, innermost frame first, waits for the lock inside an object.

    A free-threaded interpreter takes it around an operation of a list, a dictionary or the like.
    """
    for frame in frames:
        if frame.function.startswith(_CRITICAL_SECTION):
            return True
        if is_evaluation(frame) or is_instruction(frame):
            return False
    return False


def waits_for_pause(frames: Iterable[Frame]) -> bool:
    """Return whether a stack, innermost frame first, waits while all threads are stopped.

    A free-threaded interpreter stops them to collect garbage. Then a thread that comes back from a
    call waits at a semaphore.
    """
    for frame in frames:
        if frame.function.startswith((*_ATTACH, *_INTERPRETER_LOCK)):
            return True
        if is_evaluation(frame) or is_instruction(frame):
            return False
        if not is_interpreter(frame) and not is_library_wrapper(frame):
            return False
    return False


def makes_lock_for_a_wait(frame: Frame) -> bool:
    """Return whether this function of CPython 3.13 or later makes a semaphore for one wait."""
    return frame.function.startswith(_PER_WAIT)


def only_waits(frame: Frame) -> bool:
    """Return whether a function of the interpreter waits, and calls no Python function."""
    return frame.function.startswith((*_LOCK, *_INTERPRETER_LOCK))


def waits_for_interpreter(frames: Sequence[Frame]) -> bool:
    """Return whether a stack, innermost frame first, is a wait for the interpreter's lock (GIL).

    Its functions lie between the wait and the first frame of other code. The compiler may take off
    the name of the innermost one, ``take_gil``. The GIL is a condition, and no semaphore.
    """
    for frame in frames:
        if is_library_wrapper(frame) and "sem_" in frame.function:
            return False
        if frame.function.startswith((*_INTERPRETER_LOCK, "take_gil")):
            return True
        if is_evaluation(frame) or frame.function.startswith(_LOCK):
            return False
        if not is_interpreter_module(frame.module) and not is_library_wrapper(frame):
            return False
    return False
