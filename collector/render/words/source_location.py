"""Source locations: a frame as text, from a sentence of a report to a narrow cell of the screen."""

from __future__ import annotations

from locktop.collector.model import Frame


def full_location(frame: Frame) -> str:
    """Return ``function at path:line``, or ``function in module`` without a known line."""
    line = path_and_line(frame)
    where = f" at {line}" if line else f" in {frame.module}" if frame.module else ""
    return function_name(frame) + where


def short_location(frame: Frame) -> str:
    """Return ``function file:line``, or ``module+0xoffset`` without a symbol."""
    if not frame.function:
        return f"{frame.module}+{frame.offset:#x}" if frame.module else f"{frame.address:#x}"
    return f"{frame.function} {file_and_line(frame)}".rstrip()


def shortest_location(frame: Frame) -> str:
    """Return ``function:line``; without a line what ``short_location`` returns."""
    if frame.function and frame.line:
        return f"{frame.function}:{frame.line}"
    return short_location(frame)


def function_name(frame: Frame) -> str:
    """Return the function's name, ``module+0xoffset`` without a symbol."""
    return frame.function or f"{frame.module or '?'}+{frame.offset:#x}"


def path_and_line(frame: Frame) -> str:
    """Return ``path:line`` with the whole path, "" without a known file."""
    return f"{frame.file}:{frame.line}" if frame.file and frame.line else frame.file or ""


def file_and_line(frame: Frame) -> str:
    """Return ``file:line`` with the name of the file alone, else ``[module]``, else ""."""
    if frame.file:
        name = frame.file.rsplit("/", 1)[-1]
        return f"{name}:{frame.line}" if frame.line else name
    return f"[{frame.module}]" if frame.module else ""
