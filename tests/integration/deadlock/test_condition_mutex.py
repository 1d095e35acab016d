"""Deadlocks through the mutex that a condition wait takes back."""

from __future__ import annotations

import pytest
from support import tool
from support.targets import StartTarget


@pytest.mark.parametrize("how", ["signal", "timeout", "cancel", "c11"])
def test_a_deadlock_is_certain(start_target: StartTarget, how: str) -> None:
    target = start_target("cond_wait_takes_mutex_back", how)
    target.expect("deadlock")
    found = tool.snapshot(target.pid)
    (deadlock,) = found["deadlocks"]
    assert deadlock["certain"]
    names = {thread["tid"]: thread["name"] for thread in found["threads"]}
    assert {names[edge["tid"]] for edge in deadlock["cycle"]} == {"sleeper", "signaller"}
    kinds = {lock["id"]: lock["kind"] for lock in found["locks"]}
    assert {kinds[edge["waits_for"]] for edge in deadlock["cycle"]} == {"mutex"}
