"""Locks of C++: some are locks of libc, some wait in the futex system call."""

from __future__ import annotations

from typing import Any

import pytest
from support import tool, watched
from support.targets import StartTarget
from support.watched import Need

SUM = 4 * 400
KINDS = {"mutex": "mutex", "shared": "rwlock", "semaphore": "futex", "atomic": "futex"}


@pytest.mark.parametrize(("primitive", "kind"), KINDS.items())
def test_locks_of_cplusplus(
    primitive: str, kind: str, need: Need, start_target: StartTarget
) -> None:
    need("g++")
    target = start_target("cxx_primitives", primitive)
    truth = target.truth()
    assert truth["sum"] == SUM

    def waits(document: dict[str, Any]) -> bool:
        return bool(tool.thread_of(document, truth["waiter"])["waiting_for"])

    found = watched.checked(tool.scan_until(target.pid, waits, f"a waiter for the {primitive}"))
    wait = tool.thread_of(found, truth["waiter"])["waiting_for"]
    (lock,) = [one for one in found["locks"] if one["id"] == wait["lock"]]
    assert (wait["kind"], lock["address"]) == (kind, truth["address"])
    stack = " ".join(tool.functions(found, wait["stack"]))
    assert "add_up" not in stack
    assert "run<" in stack, "the waiter's function"
    if kind == "futex":
        assert (wait["holders"], lock["holders"]) == ([], []), "the holder is unknown"
    else:
        assert wait["holders"] == lock["holders"] == [target.pid]
        assert lock["acquisitions"] == SUM + 1, "the second thread does not have the lock yet"
    target.go_on()
    assert target.finish() == (0, ["ok"])
