"""The word for the kind of a lock, beside its name."""

from __future__ import annotations

import pytest

from locktop.collector.model import Kind
from locktop.collector.render.words.lock_kind import kind_word, name_with_kind, name_without_kind


@pytest.mark.parametrize(
    ("kind", "name", "word", "with_kind", "without"),
    [
        (Kind.SEM, "Lock in put (a.py:1)", "Lock", "Lock in put (a.py:1)", "in put (a.py:1)"),
        (Kind.SEM, "sem in put (a.c:1)", "sem", "sem in put (a.c:1)", "in put (a.c:1)"),
        (Kind.SEM, "g_free", "sem", "sem g_free", "g_free"),
        (Kind.MUTEX, "g_lock", "mutex", "mutex g_lock", "g_lock"),
        (Kind.MUTEX, "Lock in C", "mutex", "mutex Lock in C", "Lock in C"),
        (Kind.SEM, "Locked", "sem", "sem Locked", "Locked"),
        (Kind.FUTEX, "Rust Mutex<Log>", "futex", "Rust Mutex<Log>", "Rust Mutex<Log>"),
        (Kind.FUTEX, "GCond in put", "futex", "GCond in put", "GCond in put"),
        (Kind.FUTEX, "futex in put", "futex", "futex in put", "in put"),
        (Kind.FUTEX, "a.c: g_word", "futex", "futex a.c: g_word", "a.c: g_word"),
    ],
)
def test_a_lock_is_called_what_programmers_call_it(
    kind: Kind, name: str, word: str, with_kind: str, without: str
) -> None:
    assert kind_word(kind, name) == word
    assert name_with_kind(kind, name) == with_kind
    assert name_without_kind(kind, name) == without
