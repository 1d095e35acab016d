"""Frames of a stack: the frame that stands for the stack, and the end of an incomplete stack.

Functions that only wrap a lock do not stand for a stack.
"""

from __future__ import annotations

from collections.abc import Iterable

from locktop.collector.model import Frame

_WRAPPERS = (
    "std::", "__gthread", "__gnu_cxx::", "boost::", "absl::", "AbslInternal", "folly::", "tbb::",
    "pthread_", "__pthread_", "___pthread_", "sem_", "__GI_",
    "runtime.futex", "runtime.note", "runtime.lock", "runtime.mPark",  # Go
)  # fmt: skip
_WRAPPER_MODULES = ("libc.so", "libpthread", "libstdc++", "libc++", "libgomp", "libomp")

#: The outer end of a stack that was too deep to be recorded completely.
CUT_WHEN_RECORDED = Frame(
    address=0,
    function="(further callers were not kept)",
    file=None,
    line=None,
    module="",
    offset=0,
)
#: The outer end of a stack that could not be unwound further.
CUT_WHEN_UNWOUND = Frame(
    address=0,
    function="(further callers are not known)",
    file=None,
    line=None,
    module="",
    offset=0,
)


def innermost_own_frame(frames: Iterable[Frame]) -> Frame | None:
    """Return the innermost frame that is not a wrapper; None if there is none.

    A frame without a function name counts too, because the named frames further out belong to other
    code. A frame without a function and without a file cannot be named, so it does not count.
    """
    own = (
        frame
        for frame in frames
        if (frame.function or frame.module) and not is_library_wrapper(frame)
    )
    return next(own, None)


def is_library_wrapper(frame: Frame) -> bool:
    """Return whether the code of a frame belongs to a library of locks or to a runtime."""
    return frame.function.startswith(_WRAPPERS) or frame.module.startswith(_WRAPPER_MODULES)
