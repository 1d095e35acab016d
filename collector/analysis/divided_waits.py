"""Divides the waits from one native stack among the Python functions that samples saw there."""

from __future__ import annotations

from collections.abc import Iterable

from locktop.collector.model import Lock, WaitPart, WaitStack

#: With fewer waits whose functions are known, waits that ended stay undivided. Of ten waits, one
#: standard deviation of a share is 16 % at most; three waits would tell nothing.
MIN_WAITS = 10


def read_waits(waited: WaitStack) -> int:
    """Return of how many waits the samples know the Python functions."""
    return sum(share.waits for share in waited.python if share.stack != waited.stack)


def is_divided(waited: WaitStack) -> bool:
    """Return whether the functions of enough waits are known to divide the waits.

    If fewer waits have ended, as many waits are enough. If none has, one that goes on is enough.
    """
    if not any(share.samples for share in waited.python):
        return False
    return read_waits(waited) >= max(min(MIN_WAITS, waited.count), 1)


def parts(waited: WaitStack) -> tuple[WaitPart, ...]:
    """Return the parts of the waits: those with known Python functions, and the rest.

    The waits of the rest have the native stack. Undivided waits are one part.
    """
    if not is_divided(waited):
        return (WaitPart(stack=waited.stack, wait_s=waited.wait_s, count=waited.count),)
    samples = sum(share.samples for share in waited.python)
    return tuple(
        WaitPart(
            stack=share.stack,
            wait_s=waited.wait_s * share.samples / samples,
            count=None,
        )
        for share in waited.python
    )


def basis(locks: Iterable[Lock]) -> int:
    """Return the number of waits on which the divisions of all locks rest; 0: there is none."""
    return sum(
        read_waits(waited)
        for lock in locks
        for waited in lock.wait_stacks
        if waited.python and not waited.idle and is_divided(waited)
    )
