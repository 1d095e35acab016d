"""What a thread does now, out of its own wait and the kernel's letter for it."""

from __future__ import annotations

from locktop.collector.model import CONTENTION_KINDS, Kind, ThreadState

# proc_pid_stat(5). R may mean "wants a CPU" too; telling the two apart costs another file a thread.
_BY_LETTER = {"R": ThreadState.RUNNING, "S": ThreadState.IDLE}


def state(waits_for: Kind | None, letter: str) -> ThreadState:
    """Return the state; ``letter`` is "" where the kernel says nothing."""
    if waits_for is not None:
        return ThreadState.WAITING if waits_for in CONTENTION_KINDS else ThreadState.IDLE
    return _BY_LETTER.get(letter, ThreadState.OTHER)
