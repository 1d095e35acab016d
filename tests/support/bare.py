"""Looking at a process that runs without the library, until something is so."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import closing

from locktop.collector.attach import attach
from locktop.collector.model import Snapshot, Wait
from support.targets import PATIENCE_S


def look_until(pid: int, is_so: Callable[[Snapshot], bool]) -> Snapshot:
    """Return the first look, with names, of which it is so."""
    deadline = time.monotonic() + PATIENCE_S
    with closing(attach(pid)) as source:
        while not is_so(seen := source.look(resolve=True)):
            assert time.monotonic() < deadline, seen
    assert seen.source == "proc"
    return seen


def wait_of(seen: Snapshot, tid: int) -> Wait | None:
    """Return what a thread waits for."""
    (wait,) = (thread.waiting_for for thread in seen.threads if thread.tid == tid)
    return wait


def all_wait(tids: Iterable[int]) -> Callable[[Snapshot], bool]:
    """Return what tells whether all of these wait, with their stacks."""
    wanted = list(tids)

    def is_so(seen: Snapshot) -> bool:
        waits = [wait_of(seen, tid) for tid in wanted]
        return all(wait is not None and wait.stack for wait in waits)

    return is_so


def functions(seen: Snapshot, tid: int) -> list[str]:
    """Return the function names of a waiting thread's stack, innermost first."""
    wait = wait_of(seen, tid)
    assert wait is not None
    return [frame.function for frame in seen.stacks[wait.stack]]


def crossed(seen: Snapshot) -> list[set[tuple[int, int]]]:
    """Return the deadlocks that are certain: who waits for whom."""
    return [
        {(edge.tid, edge.held_by) for edge in found.cycle}
        for found in seen.deadlocks
        if found.certain
    ]
