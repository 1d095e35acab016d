"""Native stacks of a Python interpreter, and the Python functions that run on them."""

from __future__ import annotations

from locktop.collector.model import Frame
from locktop.collector.symbols.python.frame_reader import PythonFrame, Runs

EVALUATION = "_PyEval_EvalFrameDefault"
WAIT = ["PyThread_acquire_lock_timed", "acquire_timed", "lock_PyThread_acquire_lock"]
CALL = ["method_vectorcall", "PyObject_Vectorcall"]


def native(*names: str) -> tuple[Frame, ...]:
    """A stack of the interpreter's functions, or "module:function"."""
    found = []
    for number, name in enumerate(names):
        module, _, function = name.rpartition(":")
        found.append(Frame(number, function, None, None, module or "libpython3.so", number))
    return tuple(found)


def runs(*names: str) -> Runs:
    """One run for each word, its functions divided by commas."""
    return tuple(
        tuple(PythonFrame(function, "app.py", 1) for function in run.split(",")) for run in names
    )
