"""Deadlocks of two processes over locks in shared memory."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from support.targets import PATIENCE_S, StartTarget, Target

from locktop.collector.model import Snapshot
from locktop.collector.sources.attach import attach

#: The duration of a wait after which a scan also reads the process that owns the lock, and more.
_SETTLED_S = 0.8


def settled(target: Target, waiting: set[int]) -> Snapshot:
    """Scan until all threads of ``waiting`` have waited for _SETTLED_S seconds."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        source = attach(target.pid)
        try:
            seen = source.scan()
        finally:
            source.close()
        long = {
            thread.tid
            for thread in seen.threads
            if thread.waiting_for and thread.waiting_for.duration_s > _SETTLED_S
        }
        if waiting <= long:
            return seen
        assert time.monotonic() < deadline, f"these threads do not wait: {waiting - long}"
        time.sleep(0.05)  # leaves the CPU to the targets


@pytest.mark.parametrize("what", ["mutex", "rwlock", "timed"])
def test_a_deadlock_of_two_processes_is_reported_in_both(
    what: str, start_target: StartTarget, tmp_path: Path
) -> None:
    file = tmp_path / "shared"
    file.touch()
    one = start_target("two_processes_cross", str(file), "one", what)
    its = one.truth()
    other = start_target("two_processes_cross", str(file), "other", what)
    others = other.truth()
    settled(other, {others["main"]})
    seen = settled(one, {its["main"], its["behind"]})
    if what == "timed":
        assert seen.deadlocks == settled(other, {others["main"]}).deadlocks == ()
        return
    (found,) = seen.deadlocks
    assert found.certain, found.doubt
    assert {(edge.tid, edge.held_by, edge.pid) for edge in found.cycle} == {
        (its["main"], others["main"], 0),
        (others["main"], its["main"], other.pid),
    }
    assert found.stuck == (its["behind"],)
    # The cycle names the locks by their ids in the scanned process.
    assert {edge.waits_for for edge in found.cycle} <= {lock.id for lock in seen.locks}
    (found,) = settled(other, {others["main"]}).deadlocks
    assert {edge.pid for edge in found.cycle} == {0, one.pid}
    assert found.stuck == ()
