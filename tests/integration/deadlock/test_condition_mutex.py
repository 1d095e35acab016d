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
    # No thread notes the moment of a time limit or a cancellation.
    sleeper = next(one for one in found["threads"] if one["name"] == "sleeper")
    is_known = how in ("signal", "c11")
    assert sleeper["waiting_for"]["at_least"] is not is_known
    assert deadlock["at_least"] is not is_known
    page = " ".join(tool.run("check", "-p", target.pid).stdout.split())
    assert ("deadlock: 2 threads" in page, " for at least " in page) == (True, not is_known)
