"""One stack out of two: the native one, with Python's functions where the interpreter ran them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from locktop.collector.model import Frame
from locktop.collector.symbols.python.frame_reader import Run, Runs

#: The module of a frame that is a Python function.
PYTHON = "python"
_EVALUATION = "_PyEval_EvalFrameDefault"
#: How the interpreter gets from one Python function to the next, starts, and takes its own locks:
#: to be dropped. What is left are the functions that a program calls, such as builtin_sorted, and
#: what else the interpreter waits in, such as take_gil.
_MACHINERY = re.compile(
    r"_Py|PyEval_|PyObject_|PyVectorcall_|PyFunction_|PyCFunction_|PyRun_|Py_RunMain|Py_BytesMain"
    r"|PyThread_acquire_lock|acquire_timed|lock_PyThread_acquire_lock|rlock_acquire"
    r"|run_mod$|run_eval_code_obj$|pymain_|thread_run$|t_bootstrap$|pythread_wrapper$"
    r"|cfunction_call$|function_code_fastcall$|do_call_core$|call_function$|slot_tp_call$"
    r"|method_call$|type_call$|object_vacall$|gen_send_ex|.*vectorcall"
)


def runs_python(frames: Sequence[Frame]) -> bool:
    """Tell whether Python code is executed on a stack."""
    return any(map(_evaluates, frames))


def merged(native: Sequence[Frame], runs: Runs, whole: bool = True) -> tuple[Frame, ...] | None:
    """Return the stack with each frame of the evaluation function replaced by the Python functions
    that it executes (innermost first as both are), and without the interpreter's machinery.

    Of a native stack that is not ``whole`` the outermost frames are missing: the Python functions
    that belong to those come last. None where the two do not belong together.
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
                found.pop()  # it is a part of what is replaced
            found += _functions(next(left), frame.address)
        elif frame.module not in modules or not _is_machinery(frame.function):
            found.append(frame)
    for run in left:
        found += _functions(run, 0)
    return tuple(found)


def _functions(run: Run, address: int) -> list[Frame]:
    return [Frame(address, one.function, one.file, one.line, PYTHON, 0) for one in run]


def _evaluates(frame: Frame) -> bool:
    # A part that the compiler set apart, or a copy of its own, has a suffix: ".cold".
    return frame.function.partition(".")[0] == _EVALUATION


def _is_machinery(function: str) -> bool:
    """A function without a name is one that the interpreter does not export."""
    return not function or _MACHINERY.match(function) is not None
