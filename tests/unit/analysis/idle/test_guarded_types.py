"""The functions of its waiters tell what a lock of Rust guards."""

from __future__ import annotations

import pytest

from locktop.collector.analysis.idle import guarded_types
from locktop.collector.model import Frame

_WAIT = "std::sys::pal::unix::futex::futex_wait"


@pytest.mark.parametrize(
    ("function", "text", "is_own"),
    [
        ("<std::sync::poison::mutex::Mutex<app::Journal>>::lock", "Journal", True),
        ("std::sync::mutex::Mutex<app::Journal>::lock", "Journal", True),
        ("std::sync::rwlock::RwLock<alloc::vec::Vec<app::Entry, alloc::alloc::Global>>::read",
         "Vec<Entry>", True),
        ("std::sync::poison::mutex::Mutex<alloc::vec::Vec<u8, alloc::alloc::Global>>::lock",
         "Vec<u8>", False),
        ("std::sync::poison::mutex::Mutex<fn(u8) -> app::Log>::lock", "fn(u8) -> Log", True),
        ("std::sync::poison::mutex::Mutex<()>::lock", "()", False),
    ],
)  # fmt: skip
def test_the_method_has_the_type(function: str, text: str, is_own: bool) -> None:
    guarded = guarded_types.find(frames(_WAIT, function, "app::put"))
    assert guarded == guarded_types.GuardedType(text, is_own)


@pytest.mark.parametrize(
    "function",
    [
        "std::sync::poison::mutex::Mutex<T>::lock",
        "std::sync::poison::mutex::Mutex<app::Jour",
        "std::sys::sync::mutex::futex::Mutex::lock_contended",
        "app::sync::Mutex<app::Journal>::lock",
        "",
    ],
)
def test_other_names_have_none(function: str) -> None:
    assert guarded_types.find(frames(_WAIT, function)) is None


def test_a_long_type_loses_its_arguments() -> None:
    method = f"std::sync::poison::mutex::Mutex<app::Table<app::{'K' * 60}>>::lock"
    guarded = guarded_types.find(frames(method))
    assert guarded is not None
    assert guarded.text == "Table"


def frames(*functions: str) -> tuple[Frame, ...]:
    return tuple(Frame(1, function, None, None, "app", 0) for function in functions)
