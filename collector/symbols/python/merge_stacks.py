"""One stack from two: the native stack, with Python's functions where the interpreter ran them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from locktop.collector.model import Frame
from locktop.collector.symbols.python.frame_reader import Run, Runs

#: The module of a frame that is a Python function.
PYTHON = "python"
_EVALUATION = "_PyEval_EvalFrameDefault"
#: Functions by which the interpreter calls Python functions, starts, and takes its own locks. They
#: are left out. Functions that a program calls (builtin_sorted) stay, and so do other functions in
#: which the interpreter waits (take_gil).
_MACHINERY = re.compile(
    r"_Py|PyEval_|PyObject_|PyVectorcall_|PyFunction_|PyCFunction_|PyRun_|Py_RunMain|Py_BytesMain"
    r"|PyThread_acquire_lock|acquire_timed|lock_PyThread_acquire_lock|rlock_acquire"
    r"|run_mod$|run_eval_code_obj$|pymain_|thread_run$|t_bootstrap$|pythread_wrapper$"
    r"|cfunction_call$|function_code_fastcall$|do_call_core$|call_function$|slot_tp_call$"
    r"|method_call$|type_call$|object_vacall$|gen_send_ex|.*vectorcall"
)


def runs_python(frames: Sequence[Frame]) -> bool:
    """Tell whether a stack executes Python code."""
    return any(map(_evaluates, frames))


def merged(native: Sequence[Frame], runs: Runs, whole: bool = True) -> tuple[Frame, ...] | None:
    """Return a stack of Python's functions and the native functions that they call.

    Each frame of the evaluation function is replaced by the Python functions that it executes.
    Frames of the interpreter's machinery are left out.

    Args:
        native: The native stack, innermost first.
        runs: The Python functions, innermost first.
        whole: Whether the native stack is complete. If it is not, the Python functions of its
            missing outermost frames come last.

    Returns:
        The stack; None if the two do not belong together.
    """
    modules = {frame.module for frame in native if _evaluates(frame)}
    missing = len(runs) - sum(map(_evaluates, native))
    if not modules or missing < 0 or (whole and missing):
        return None
    found: list[Frame] = []
    left = iter(runs)
    for frame in native:
        if _evaluates(frame):
            while found and found[-1].inlined and found[-1].address == frame.address:
                found.pop()  # inlined into the replaced frame
            found += _functions(next(left), frame.address)
        elif frame.module not in modules or not _is_machinery(frame.function):
            found.append(frame)
    for run in left:
        found += _functions(run, 0)
    return tuple(found)


def _functions(run: Run, address: int) -> list[Frame]:
    return [
        Frame(
            address=address,
            function=one.function,
            file=one.file,
            line=one.line,
            module=PYTHON,
            offset=0,
            directory=one.directory,
        )
        for one in run
    ]


def _evaluates(frame: Frame) -> bool:
    # A part that the compiler separated, or a copy, has a suffix: ".cold".
    return frame.function.partition(".")[0] == _EVALUATION


def _is_machinery(function: str) -> bool:
    """Tell whether a function is the interpreter's; one without a name is not exported by it."""
    return not function or _MACHINERY.match(function) is not None
