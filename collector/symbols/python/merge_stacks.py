"""One stack from two: the native stack, with Python's functions where the interpreter ran them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from locktop.collector.model import Frame
from locktop.collector.model.frames import PYTHON, PYTHON_NOT_READ
from locktop.collector.symbols.python.frame_reader import Run, Runs
from locktop.collector.symbols.python.interpreter import (
    is_evaluation,
    is_instruction,
    is_interpreter,
    only_waits,
)

#: Functions by which the interpreter calls Python functions, starts, and takes its own locks. They
#: are left out. Functions that a program calls (builtin_sorted) stay, and so do other functions in
#: which the interpreter waits (take_gil).
_MACHINERY = re.compile(
    r"_Py|_TAIL_CALL_|PyEval_|PyObject_|PyVectorcall_|PyFunction_|PyCFunction_|PyRun_|Py_RunMain|Py_BytesMain"
    r"|PyThread_acquire_lock|PyEvent_|ThreadHandle_|PyThreadHandle|acquire_timed|lock_PyThread_acquire_lock|rlock_acquire"
    r"|run_mod$|run_eval_code_obj$|pymain_|thread_run$|t_bootstrap$|pythread_wrapper$"
    r"|cfunction_call|function_code_fastcall$|do_call_core$|call_function$|slot_tp_call$"
    r"|method_call$|type_call$|object_vacall$|gen_send_ex|.*vectorcall"
)


def runs_python(frames: Sequence[Frame]) -> bool:
    """Tell whether a stack may execute Python code; a merged stack shows that code already."""
    return any(map(is_interpreter, frames)) and all(frame.module != PYTHON for frame in frames)


def merge(
    native: Sequence[Frame], runs: Runs, whole: bool = True, names_are_read: bool = True
) -> tuple[Frame, ...] | None:
    """Return a stack of Python's functions and the native functions that they call.

    Each frame of the evaluation function is replaced by the Python functions that it executes.
    Frames of the interpreter's machinery are left out. In a stripped interpreter the evaluation
    may have no name: see `_merge_by_module()`.

    Args:
        native: The native stack, innermost first.
        runs: The Python functions, innermost first.
        whole: Whether the native stack is complete. If it is not, the Python functions of its
            missing outermost frames come last.
        names_are_read: Whether a nameless function of the interpreter stays nameless.

    Returns:
        The stack; None if the two do not belong together, or not yet.
    """
    evaluates = _evaluations(native)
    modules = {frame.module for frame, is_one in zip(native, evaluates, strict=True) if is_one}
    missing = len(runs) - sum(evaluates)
    if missing < 0 or not modules or (whole and missing):
        return _merge_by_module(native, runs) if names_are_read else None
    result: list[Frame] = []
    left = iter(runs)
    for frame, is_one in zip(native, evaluates, strict=True):
        if is_one:
            _remove_inlined(result, frame)
            result += _functions(next(left), frame.address)
        elif frame.module not in modules or not _is_machinery(frame.function):
            result.append(frame)
    for run in left:
        result += _functions(run, 0)
    return tuple(result)


def replace_unread(native: Sequence[Frame]) -> tuple[Frame, ...]:
    """Return a native stack with one line in place of Python functions that nobody read.

    The frames of the interpreter's machinery would tell nothing about the program. A stack of an
    interpreter whose evaluation has no name stays as it is.

    Args:
        native: The native stack, innermost first.
    """
    evaluates = _evaluations(native)
    modules = {frame.module for frame, is_one in zip(native, evaluates, strict=True) if is_one}
    result: list[Frame] = []
    for frame, is_one in zip(native, evaluates, strict=True):
        if is_one:
            _remove_inlined(result, frame)
            if not result or result[-1] is not PYTHON_NOT_READ:
                result.append(PYTHON_NOT_READ)
        elif frame.module not in modules or not _is_machinery(frame.function):
            result.append(frame)
    return tuple(result)


def _remove_inlined(result: list[Frame], frame: Frame) -> None:
    """Remove the functions that the compiler put into the function of ``frame``."""
    while result and result[-1].inlined and result[-1].address == frame.address:
        result.pop()


def _evaluations(native: Sequence[Frame]) -> list[bool]:
    """Return for each frame whether it stands for one call of the evaluation function."""
    called = [is_evaluation(frame) for frame in native]
    # The evaluation function calls the first instruction, and each one jumps to the next.
    return [
        is_called or (is_instruction(frame) and called[number : number + 1] != [True])
        for number, (frame, is_called) in enumerate(zip(native, called, strict=True), 1)
    ]


def _merge_by_module(native: Sequence[Frame], runs: Runs) -> tuple[Frame, ...] | None:
    """Return the merged stack of an interpreter whose evaluation has no name.

    The frames of the interpreter lie in groups, between frames of other modules. One group has all
    runs, or each has one. Where that cannot be told, the frames between the groups are left out.

    Returns:
        The stack; None if no frame of the interpreter is nameless.
    """
    is_own = [is_interpreter(frame) for frame in native]
    if not runs or not any(
        own and not frame.function for frame, own in zip(native, is_own, strict=True)
    ):
        return None
    bounds = _groups(native, is_own)
    if len(bounds) not in (1, len(runs)):
        bounds = [(bounds[0][0], bounds[-1][1])]
    shares = [runs] if len(bounds) == 1 else [(run,) for run in runs]
    result: list[Frame] = []
    done = 0
    for (begin, end), share in zip(bounds, shares, strict=True):
        result += _foreign(native[done:begin], is_own[done:begin])
        for run in share:
            result += _functions(run, native[begin].address)
        done = end
    result += _foreign(native[done:], is_own[done:])
    return tuple(result)


def _groups(native: Sequence[Frame], is_own: Sequence[bool]) -> list[tuple[int, int]]:
    """Return the begin and end of the groups that may run Python functions; of all, if none may."""
    bounds: list[tuple[int, int]] = []
    for number, own in enumerate(is_own):
        if own and number and is_own[number - 1]:
            bounds[-1] = bounds[-1][0], number + 1
        elif own:
            bounds.append((number, number + 1))
    # Other modules call an exported function, which has a name.
    running = [(begin, end) for begin, end in bounds if not only_waits(native[end - 1])]
    return running or bounds


def _foreign(frames: Sequence[Frame], is_own: Sequence[bool]) -> list[Frame]:
    return [frame for frame, own in zip(frames, is_own, strict=True) if not own]


def _functions(run: Run, address: int) -> list[Frame]:
    return [
        Frame(
            address=address,
            function=frame.function,
            file=frame.file,
            line=frame.line,
            module=PYTHON,
            offset=0,
            directory=frame.directory,
        )
        for frame in run
    ]


def _is_machinery(function: str) -> bool:
    """Tell whether a function is the interpreter's; one without a name is not exported by it."""
    return not function or _MACHINERY.match(function) is not None
