"""A wait for a message is no part of a deadlock."""

from __future__ import annotations

import pytest

from locktop.collector.analysis import message_waits
from locktop.collector.model import BlockReason, Deadlock, DeadlockEdge, Frame

LOCK, QUEUE = 1, 2


def frame(function: str, module: str) -> Frame:
    return Frame(0x1000, function, None, None, module, 0)


def deadlock(*edges: tuple[int, BlockReason]) -> Deadlock:
    """A cycle of waits, each with its stack and its reason."""
    tids = range(len(edges))
    return Deadlock(
        True,
        5.0,
        tuple(
            DeadlockEdge(tid, 9, (tid + 1) % len(edges), stack, 0, reason)
            for tid, (stack, reason) in zip(tids, edges, strict=True)
        ),
    )


@pytest.mark.parametrize(
    ("function", "module"),
    [
        ("", "_queue.cpython-311-x86_64-linux-gnu.so"),  # names are not known yet
        ("_queue_SimpleQueue_get_impl", "python3.11"),
    ],
)
def test_a_wait_in_a_simple_queue_is_for_a_message(function: str, module: str) -> None:
    stacks = {
        LOCK: (frame("PyThread_acquire_lock_timed", "python3.11"), frame("work", "python")),
        QUEUE: (frame("PyThread_acquire_lock_timed", "python3.11"), frame(function, module)),
    }
    cycle = deadlock((LOCK, BlockReason.GOT), (LOCK, BlockReason.GOT))
    through = deadlock((LOCK, BlockReason.GOT), (QUEUE, BlockReason.GOT))
    itself, gone = deadlock((QUEUE, BlockReason.GOT)), deadlock((QUEUE, BlockReason.ABANDONED))
    below = deadlock((QUEUE, BlockReason.HELD))  # a mutex is never a message
    assert message_waits.leave_out((through, cycle, itself, gone, below), stacks) == (cycle, below)
    assert message_waits.leave_out((cycle, itself), {}) == (cycle, itself)
