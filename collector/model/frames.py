"""Functions that only take a lock for somebody: the frame further out tells whose lock it is."""

from __future__ import annotations

from collections.abc import Iterable

from locktop.collector.model import Frame

_WRAPPERS = (
    "std::", "__gthread", "__gnu_cxx::", "boost::", "absl::", "AbslInternal", "folly::", "tbb::",
    "pthread_", "__pthread_", "___pthread_", "sem_", "__GI_",
    "runtime.futex", "runtime.note", "runtime.lock", "runtime.mPark",  # of Go
)  # fmt: skip
_WRAPPER_MODULES = ("libc.so", "libpthread", "libstdc++", "libc++", "libgomp", "libomp")


def innermost_own_frame(frames: Iterable[Frame]) -> Frame | None:
    """Return the innermost frame that is not a wrapper's; None where there is none.

    One without a name too, for the named ones further out are somebody else's. What belongs to no
    file cannot be called anything.
    """
    own = (
        frame
        for frame in frames
        if (frame.function or frame.module)
        and not frame.function.startswith(_WRAPPERS)
        and not frame.module.startswith(_WRAPPER_MODULES)
    )
    return next(own, None)
