"""The type of the data that a Mutex or RwLock of Rust guards, by the functions of a waiter.

The method that takes the lock has the type in its name: ``Mutex<app::Journal>::lock``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from msgspec import Struct

from locktop.collector.model import Frame

_METHOD = re.compile(r"\bstd::sync::(?:\w+::)*(?:Mutex|RwLock)<")
_MAX_FRAMES = 8  # of a stack, from the innermost one on
_PLACEHOLDER = re.compile(r"[A-Z]\w?")  # "T": the name does not have the type
_PATH = re.compile(r"\b(?:\w+::)+")
_OF_LIBRARY = re.compile(r"(?:std|core|alloc)::")
#: Arguments that hardly any program chooses.
_DEFAULTS = re.compile(r", (?:alloc::alloc::Global|std::hash::random::RandomState)\b")
_MAX_LENGTH = 40  # characters; the arguments of a longer type are left out


class GuardedType(Struct, frozen=True):
    """The type of the data inside a lock."""

    text: str  # without paths: "Vec<Entry>"
    is_own: bool  # the program defines it, or a part of it


def find(frames: Sequence[Frame]) -> GuardedType | None:
    """Return what the lock guards that a thread waits for; None if no function tells.

    Args:
        frames: the stack of the waiter, innermost frame first.
    """
    for frame in islice(frames, _MAX_FRAMES):
        method = _METHOD.search(frame.function)
        if method is None:
            continue
        argument = _argument(frame.function[method.end() :])
        if not argument or _PLACEHOLDER.fullmatch(argument):
            return None
        whole = _DEFAULTS.sub("", argument)
        text = _PATH.sub("", whole)
        if len(text) > _MAX_LENGTH:
            text = text.partition("<")[0]
        is_own = any(not _OF_LIBRARY.match(path[0]) for path in _PATH.finditer(whole))
        return GuardedType(text, is_own)
    return None


def _argument(text: str) -> str:
    """Return the text before the bracket that closes the argument; "" without one."""
    depth = 1
    for index, character in enumerate(text):
        depth += (character in "<([") - (character in ")]")
        if character == ">" and text[index - 1 : index] != "-":  # no arrow of a function's type
            depth -= 1
        if not depth:
            return text[:index]
    return ""
