"""Which stacks are waits for the locks of a Python interpreter."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders import records

from locktop.collector.model import Frame
from locktop.collector.symbols.python.interpreter import (
    waits_for_interpreter,
    waits_for_object,
    waits_for_pause,
)


def stack(*functions: str) -> tuple[Frame, ...]:
    """Return frames, innermost first; a name with @ has a module."""
    pairs = [function.partition("@")[::2] for function in functions]
    return tuple(
        replace(records.frame(function, "a.c", 1), module=module or "app")
        for function, module in pairs
    )


@pytest.mark.parametrize(
    ("functions", "is_wait"),
    [
        (("pthread_cond_timedwait@libc.so.6", "take_gil@python3.11", "run@app"), True),
        (("pthread_cond_timedwait@libc.so.6", "@python3.11", "PyGILState_Ensure@python3.11"), True),
        (("PyEval_RestoreThread@libpython3.14.so.1.0",), True),
        (("pthread_cond_timedwait@libc.so.6", "work@app", "PyGILState_Ensure@python3.11"), False),
        (("sem_wait@libc.so.6", "PyThread_acquire_lock_timed@python3.11"), False),
        (("sem_wait@libc.so.6", "@python3.13t", "PyEval_RestoreThread@python3.13t"), False),
        (("pthread_cond_wait@libc.so.6", "@python3.11", "_PyEval_EvalFrameDefault"), False),
        ((), False),
    ],
)
def test_a_wait_for_the_interpreter_shows_in_its_innermost_functions(
    functions: tuple[str, ...], is_wait: bool
) -> None:
    assert waits_for_interpreter(stack(*functions)) is is_wait


@pytest.mark.parametrize(
    ("functions", "is_wait"),
    [
        (("sem_wait", "_PySemaphore_Wait", "PyMutex_Lock", "_PyCriticalSection_BeginSlow"), True),
        (("sem_wait", "_PySemaphore_Wait", "lock_PyThread_acquire_lock"), False),
        (("sem_wait", "_PyEval_EvalFrameDefault", "_PyCriticalSection2_BeginSlow"), False),
        (("sem_wait", "_TAIL_CALL_CALL", "_PyCriticalSection_BeginSlow"), False),
        ((), False),
    ],
)
def test_a_wait_for_an_object_begins_a_critical_section(
    functions: tuple[str, ...], is_wait: bool
) -> None:
    assert waits_for_object(stack(*functions)) is is_wait


@pytest.mark.parametrize(
    ("functions", "is_wait"),
    [
        (("sem_wait@libc.so.6", "@python3.13t", "PyEval_RestoreThread@python3.13t"), True),
        (("sem_wait@libc.so.6", "_PySemaphore_Wait@python3.13t",
          "tstate_wait_attach@python3.13t"), True),
        (("sem_wait@libc.so.6", "@python3.13t", "work@app", "PyEval_RestoreThread"), False),
        (("sem_wait@libc.so.6", "@python3.13t", "_PyEval_EvalFrameDefault"), False),
        ((), False),
    ],
)  # fmt: skip
def test_a_wait_for_the_end_of_a_pause_comes_back_to_the_interpreter(
    functions: tuple[str, ...], is_wait: bool
) -> None:
    assert waits_for_pause(stack(*functions)) is is_wait
