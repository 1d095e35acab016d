"""Waits for a message that look like waits for a lock.

``queue.SimpleQueue`` of CPython has a semaphore of one unit. A thread that finds the queue empty
gets the unit. The thread that puts an item next posts the semaphore. If one thread did both so far,
the counts are those of a lock. But any thread may put an item.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from locktop.collector.model import BlockReason, Deadlock, Frame

#: The functions of the module, in an interpreter that has it built in.
_FUNCTION = "_queue_SimpleQueue_"
#: The beginning of the module's file, as _queue.cpython-311-x86_64-linux-gnu.so.
_MODULE = "_queue."
#: Those of a semaphore that threads use as a lock.
_REASONS = frozenset({BlockReason.GOT, BlockReason.ABANDONED, BlockReason.AT_FORK})


def leave_out(
    deadlocks: Iterable[Deadlock], stacks: Mapping[int, Sequence[Frame]]
) -> tuple[Deadlock, ...]:
    """Return the deadlocks without those that have a wait for a message.

    Args:
        deadlocks: The deadlocks of a scan.
        stacks: The frames of stacks by id.
    """
    return tuple(
        [
            deadlock
            for deadlock in deadlocks
            if not any(
                edge.reason in _REASONS and _is_in_queue(stacks.get(edge.stack, ()))
                for edge in deadlock.cycle
            )
        ]
    )


def _is_in_queue(frames: Iterable[Frame]) -> bool:
    return any(
        frame.module.startswith(_MODULE) or frame.function.startswith(_FUNCTION) for frame in frames
    )
