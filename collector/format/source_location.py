"""A place in the code, in words."""

from __future__ import annotations

from locktop.collector.model import Frame


def place(frame: Frame) -> str:
    """Return ``function at file:line``, or ``function in module`` where no line is known; of what
    lies in no file the address."""
    line = _line(frame)
    where = f" at {line}" if line else f" in {frame.module}" if frame.module else ""
    return function(frame) + where


def spot(frame: Frame) -> str:
    """Return the same in short: ``function file:line``."""
    return f"{function(frame)} {_line(frame)}".rstrip()


def function(frame: Frame) -> str:
    """Return the function's name, ``module+0xoffset`` where there is no symbol."""
    return frame.function or f"{frame.module or '?'}+{frame.offset:#x}"


def _line(frame: Frame) -> str:
    return f"{frame.file}:{frame.line}" if frame.file and frame.line else frame.file or ""
