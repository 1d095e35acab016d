"""The words for frames where a format takes one text."""

from __future__ import annotations

from locktop.collector.model import Frame

#: In place of the frames of a stack that is not known.
NO_STACK = "(no stack known)"


def function_name(frame: Frame) -> str:
    """Return the function, or the module with an offset, or the address."""
    if frame.function:
        return frame.function
    return f"{frame.module}+{frame.offset:#x}" if frame.module else f"{frame.address:#x}"
