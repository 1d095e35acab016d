"""Which frames of a stack are code that the program did not write, in the words of the screen."""

from __future__ import annotations

from locktop.collector.model import Frame
from locktop.collector.model.frames import is_standard_library
from locktop.collector.symbols.python.interpreter import is_interpreter


def owner_of(frame: Frame) -> str:
    """Return "the standard library" or "Python's interpreter"; "" for the program's own code."""
    if is_standard_library(frame):
        return "the standard library"
    return "Python's interpreter" if is_interpreter(frame) else ""
