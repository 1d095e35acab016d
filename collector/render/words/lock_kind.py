"""The word for the kind of a lock.

A ``threading.Lock`` of Python is a semaphore for the C library. A Python programmer knows it by its
own name.
"""

from __future__ import annotations

import re

from locktop.collector.model import Kind
from locktop.collector.model.kinds import PYTHON_LOCK, TRAITS

#: The name of a futex of a known type begins with the type: "Rust Mutex in put (store.rs:7)". The
#: name of a variable has no such part.
_TYPED = re.compile(r"(?!futex ).+ (?:in |0x)|Rust ")


def kind_word(kind: Kind, name: str) -> str:
    """Return the word for the kind of a lock with that name: ``mutex``, ``Lock``."""
    is_python_lock = kind is Kind.SEM and name.startswith(f"{PYTHON_LOCK} ")
    return PYTHON_LOCK if is_python_lock else kind.value


def signal_word(kind: Kind, name: str) -> str:
    """Return what threads do that lets a waiter go on, ``posted``; "" if none does.

    Python programmers release a ``threading.Lock``, which posts its semaphore.
    """
    return "released" if kind_word(kind, name) == PYTHON_LOCK else TRAITS[kind].signal_word


def name_with_kind(kind: Kind, name: str) -> str:
    """Return the word and the name, unless the name begins with the word or a type of futex."""
    word = kind_word(kind, name)
    if kind is Kind.FUTEX and _TYPED.match(name):
        return name
    return name if name.startswith(word) else f"{word} {name}"


def name_without_kind(kind: Kind, name: str) -> str:
    """Return the name without the word at its begin."""
    return name.removeprefix(f"{kind_word(kind, name)} ")
