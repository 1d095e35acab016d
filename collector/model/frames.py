"""Frames of a stack: the frame that stands for the stack, and those in place of unknown ones.

Functions that only wrap a lock do not stand for a stack.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from locktop.collector.model.stacks import Frame

_WRAPPERS = (
    "std::", "__gthread", "__glibcxx_", "__gnu_cxx::", "boost::", "absl::", "AbslInternal",
    "folly::", "tbb::", "core::ptr::drop_in_place", "core::mem::drop",
    "pthread_", "__pthread_", "___pthread_", "sem_", "__GI_",
    "runtime.futex", "runtime.note", "runtime.lock", "runtime.mPark",  # Go
)  # fmt: skip
#: The module of a frame that is a Python function.
PYTHON = "python"
#: The functions in which a thread waits for Python's global interpreter lock (GIL).
_TAKE_GIL = (
    "PyCOND_TIMEDWAIT", "take_gil", "PyEval_RestoreThread", "PyEval_AcquireThread",
    "PyGILState_Ensure",
)  # fmt: skip
_WRAPPER_MODULES = ("libc.so", "libpthread", "libstdc++", "libc++", "libgomp", "libomp")

#: Namespaces of the standard libraries. A program may have a namespace ``core`` of its own, so
#: files tell that of Rust.
_STANDARD = (
    "std::", "__gnu_cxx::", "__cxxabiv1::", "__gthread", "__glibcxx_", "__rust_begin_",
    "runtime.", "sync.", "internal/",  # Go
)  # fmt: skip
_STANDARD_MODULES = (
    "libc.so", "libc-2", "libpthread", "libm.so", "libdl", "ld-linux", "libstdc++", "libc++",
    "libgcc_s", "ld-musl",
)  # fmt: skip
#: Files of Python itself and of Rust, not of a package that the program installed.
_STANDARD_FILE = re.compile(
    r"^<frozen |/lib(?:64)?/python3[^/]*/(?!(?:site|dist)-packages/)"
    r"|(?:^|/)library/(?:std|core|alloc)/src/"
)
#: The arguments of a template, innermost first.
_TEMPLATE = re.compile(r"<[^<>]*>")
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
#: Stands for functions of Python that nobody read: a wait or a sleep may end before that.
PYTHON_NOT_READ = Frame(
    address=0,
    function="(Python functions were not read)",
    file=None,
    line=None,
    module="",
    offset=0,
)
_CUTS = frozenset({
    CUT_WHEN_RECORDED.function, CUT_WHEN_UNWOUND.function, PYTHON_NOT_READ.function
})  # fmt: skip


def innermost_own_frame(frames: Iterable[Frame]) -> Frame | None:
    """Return the innermost frame that is not a wrapper; None if there is none.

    A frame without a function name counts too, because the named frames further out belong to other
    code. A frame without a function and without a file cannot be named, so it does not count. The
    same holds for the end of an incomplete stack. A thread that waits for Python's GIL stands in
    its innermost Python function.
    """
    wants_gil, native = False, None
    for frame in frames:
        if frame.function.startswith(_TAKE_GIL):
            wants_gil = True
        elif (
            not (frame.function or frame.module)
            or frame.function in _CUTS
            or is_library_wrapper(frame)
        ):
            continue
        elif not wants_gil or frame.module == PYTHON:
            return frame
        else:
            native = native or frame
    return native


def is_standard_library(frame: Frame) -> bool:
    """Return whether the code of a frame belongs to the standard library of its language."""
    if frame.file is not None and _STANDARD_FILE.search(frame.path):
        return True
    if frame.module.startswith(_STANDARD_MODULES):
        return True
    return _qualified_name(frame.function).startswith(_STANDARD)


@lru_cache(maxsize=1024)  # each drawing asks for the same names, and templates nest deeply
def _qualified_name(function: str) -> str:
    """Return the function without the type of its result: ``f`` of ``std::string f<int>(int)``.

    Of an implementation of a Rust trait the result begins with the type.
    """
    if function.startswith("<"):
        return function.lstrip("<&")
    name = function.partition("(")[0]
    while (shorter := _TEMPLATE.sub("", name)) != name:
        name = shorter
    return name.rpartition(" ")[2] if "operator" not in name else name


def is_library_wrapper(frame: Frame) -> bool:
    """Return whether the code of a frame belongs to a library of locks or to a runtime."""
    # A function of a Rust type begins with the type in brackets.
    function = frame.function.lstrip("<&")
    return function.startswith(_WRAPPERS) or frame.module.startswith(_WRAPPER_MODULES)
