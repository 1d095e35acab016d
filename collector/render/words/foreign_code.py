"""Which frames of a stack are code that the program did not write, in the words of the screen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from locktop.collector.model import Frame
from locktop.collector.model.frames import PYTHON, is_library_wrapper, is_standard_library
from locktop.collector.symbols.python.interpreter import is_interpreter

#: A part of the file name of each module in C, and the directory of those in CPython's sources.
_EXTENSION, _SOURCES_OF_PYTHON = ".cpython-", "/Modules/"


def owner_of(frame: Frame) -> str:
    """Return "the standard library" or "Python's interpreter"; "" for the program's own code."""
    if is_standard_library(frame):
        return "the standard library"
    is_python = is_interpreter(frame) or _is_extension_of_python(frame)
    return "Python's interpreter" if is_python else ""


def _is_extension_of_python(frame: Frame) -> bool:
    """Return whether a frame belongs to a module in C that is a part of Python itself."""
    return _EXTENSION in frame.module and _SOURCES_OF_PYTHON in frame.path


def python_frame(frames: Iterable[Frame]) -> Frame | None:
    """Return the innermost Python function of the program's own; None if there is none."""
    own = (frame for frame in frames if frame.module == PYTHON and not owner_of(frame))
    return next(own, None)


def innermost_program_frame(frames: Sequence[Frame]) -> Frame | None:
    """Return the innermost frame of the program's own code; None if there is none.

    In a stack with Python functions it is one of these: what they call in C is mostly a module of
    Python's own, such as ``_socket``.
    """
    in_python = python_frame(frames)
    if in_python is not None:
        return in_python
    own = (frame for frame in frames if not owner_of(frame) and not is_library_wrapper(frame))
    return next((frame for frame in own if frame.module), None)
