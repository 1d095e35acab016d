"""Which function of a stack made a lock: the innermost one that does more than make the lock.

Locks that a wrapper makes, such as the constructor of a mutex class, are not alike. So the caller
of the wrapper names them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from locktop.collector.model import Frame
from locktop.collector.model.frames import is_library_wrapper
from locktop.collector.symbols.python.interpreter import (
    is_interpreter_module,
    makes_lock_for_a_wait,
)

#: More libraries of locks. They call no function that initialises a lock for its own sake.
_LIBRARIES = (
    "__cxxabiv1::", "core::", "alloc::", "parking_lot::", "parking_lot_core::", "lock_api::",
    "once_cell::", "lazy_static::", "crossbeam_utils::", "tokio::sync::",
)  # fmt: skip
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
#: A name that ends with one of these words, or with one and fillers, is the name of a lock.
_LOCKS = frozenset((
    "mutex", "mtx", "lock", "rwlock", "spinlock", "sem", "semaphore", "cond", "condvar",
    "condition", "critical", "crit", "futex", "lck", "barrier",
))  # fmt: skip
#: The same, but only without a word that says more: a HealthMonitor is no lock.
_LOCKS_ALONE = frozenset(("monitor", "spin"))
_MAKERS = frozenset((
    "init", "initialize", "initialise", "alloc", "allocate", "create", "new", "make",
    "construct", "setup", "open",
))  # fmt: skip
_FILLERS = frozenset((
    "t", "impl", "base", "internal", "type", "ex", "ptr", "recursive", "rec", "fast", "raw",
    "static", "inline", "default", "timed", "robust", "shared", "self", "obj", "object",
    "platform", "native", "posix", "pthread", "os", "private", "data", "variable", "var",
    "section", "handle", "attr", "with", "attributes", "np", "checked", "debug", "adaptive",
    "normal", "plain", "simple", "thread", "traits", "policy", "wrapper",
))  # fmt: skip
#: Every lock of Python is made here up to 3.12, and Python functions say whose the lock is.
_PYTHON_MAKER = "PyThread_allocate_lock"
_ONCE = re.compile(r"(?:call|run|do|exec|execute)_?once|^(?:uv_)?once$", re.IGNORECASE)


def maker(frames: Iterable[Frame]) -> Frame | None:
    """Return the frame of the function that made a lock; None if no frame says so.

    Args:
        frames: The stack of the initialisation, innermost first. Frames behind the result are not
            read, because each name costs time.

    A frame without a function name counts as the maker, except in CPython: a stripped interpreter
    makes Python's locks there. If the stack has nothing but wrappers, the result is the outermost
    constructor of a lock's type.
    """
    constructor = None
    for frame in frames:
        if not (frame.function or frame.module) or is_library_wrapper(frame):
            continue
        if _makes_python_lock(frame):
            return None
        if not is_wrapper(frame.function):
            return frame
        if _is_constructor(_parts(frame.function)):
            constructor = frame
    return constructor


def _makes_python_lock(frame: Frame) -> bool:
    if not frame.function:
        return is_interpreter_module(frame.module)
    return frame.function == _PYTHON_MAKER or makes_lock_for_a_wait(frame)


@lru_cache(1 << 12)
def is_wrapper(function: str) -> bool:
    """Return whether a function, by its name, only makes a lock for its caller.

    Args:
        function: A demangled name without parameters.
    """
    if function.lstrip("<").startswith(("std::", *_LIBRARIES)):
        return True
    parts = _parts(function)
    if not parts:
        return False
    name = _words(parts[-1])
    if _ONCE.search(_plain(parts[-1])) or (set(name) & _MAKERS and _is_lock(name)):
        return True
    makes = _is_constructor(parts) or bool(set(name) & _MAKERS)
    return makes and len(parts) > 1 and _is_lock_type(parts[-2])


def _is_constructor(parts: Sequence[str]) -> bool:
    return len(parts) > 1 and _plain(parts[-1]) == _plain(parts[-2])


def _is_lock_type(part: str) -> bool:
    """Return whether a type is a lock, or a template whose first argument is a lock."""
    if _is_lock(_words(part)):
        return True
    _, has_arguments, arguments = part.partition("<")
    first = _parts(arguments.removesuffix(">").split(",")[0]) if has_arguments else ()
    return bool(first) and _is_lock(_words(first[-1]))


def _is_lock(words: Sequence[str]) -> bool:
    """Return whether words name a lock and nothing that has locks, such as a table of locks."""
    left = [word for word in words if word not in _MAKERS and not word.isdigit()]
    while left and left[-1] in _FILLERS:
        left.pop()
    if not left:
        return False
    if left[-1] in _LOCKS_ALONE:
        return all(word in _FILLERS or len(word) == 1 for word in left[:-1])
    return left[-1] in _LOCKS


def _words(part: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(_plain(part))]


def _plain(part: str) -> str:
    """Return a part of a name without template arguments."""
    return part.partition("<")[0]


def _parts(function: str) -> tuple[str, ...]:
    """Divide a name at each ``::`` that is not within brackets."""
    parts, depth, begin, index = [], 0, 0, 0
    while index < len(function):
        if function[index] in "<({[":
            depth += 1
        elif function[index] in ">)}]":
            depth -= depth > 0
        elif not depth and function.startswith("::", index):
            parts.append(function[begin:index])
            index += 1
            begin = index + 1
        index += 1
    parts.append(function[begin:])
    if parts[0].startswith("<"):  # Rust: a method of a type, perhaps for a trait
        type_ = parts[0][1:-1].partition(" as ")[0]
        parts[:1] = _parts(type_) if type_ else ()
    return tuple(part for part in parts if part)
