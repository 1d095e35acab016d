"""Locks of Rust, which wait in the futex system call and do not say their holder."""

from __future__ import annotations

from typing import Any

import pytest
from support import tool, watched
from support.targets import StartTarget
from support.watched import Need

pytestmark = pytest.mark.big


@pytest.mark.parametrize(
    ("primitive", "state", "why", "type_"),
    [
        ("mutex", "waiting", "rust-mutex", "Rust Mutex"),
        ("rwlock", "waiting", "rust-rwlock", "Rust RwLock"),
        ("once", "waiting", "rust-once", "Rust Once"),
        ("condvar", "idle", "rust-condvar", "Rust Condvar"),
        ("channel", "idle", "rust-park", "Rust park"),
    ],
)
def test_locks_of_rust(
    primitive: str, state: str, why: str, type_: str, need: Need, start_target: StartTarget
) -> None:
    need("rustc")
    target = start_target("rust_primitives", primitive)
    truth = target.truth()
    assert truth["sum"] == 4 * 20000

    def waits(document: dict[str, Any]) -> bool:
        return bool(tool.thread_of(document, truth["waiter"])["waiting_for"])

    found = watched.checked(tool.scan_until(target.pid, waits, f"a waiter for the {primitive}"))
    thread = tool.thread_of(found, truth["waiter"])
    assert thread["waiting_for"]["kind"] == "futex"
    assert thread["waiting_for"]["holders"] == []
    assert (thread["state"], thread["waiting_for"]["why"]) == (state, why)
    (lock,) = (lock for lock in found["locks"] if lock["id"] == thread["waiting_for"]["lock"])
    assert lock["type"] == type_
    assert lock["name"].startswith(f"{type_} in ") or primitive == "once", "a once is a variable"
    stack = " ".join(tool.functions(found, thread["waiting_for"]["stack"]))
    assert "rust_primitives::" in stack, "the waiter's function"
    target.go_on()
    assert target.finish() == (0, ["ok"])
