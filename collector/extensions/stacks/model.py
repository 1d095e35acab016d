"""All threads of one scan, in groups with equal stacks."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from locktop.collector.model import Frame, Snapshot, Thread

#: The name of the extension, of its action and of its view.
NAME = "all_stacks"


class GroupState(StrEnum):
    """The state of the threads of a group, the most urgent one first."""

    DEADLOCKED = "deadlocked"  # in a certain or a possible deadlock
    WAITING = "waiting"  # in contention
    RUNNING = "running"  # on a CPU, or ready for one
    ACTIVE = "active"  # in brief waits and calls: it went on while it was read
    ASLEEP = "asleep"  # with a lock, on a disk, or in a wait that the library does not observe
    STOPPED = "stopped"  # by a signal or a debugger
    OTHER = "other"  # not known
    IDLE = "idle"  # waits for work
    ENDED = "ended"  # in the last scan of a process that has ended

    __hash__ = str.__hash__  # as in Kind


class StackGroup(Struct, frozen=True):
    """Threads in one state with equal stacks."""

    number: int  # from 1 on
    state: GroupState
    threads: Sequence[Thread]  # the longest wait first, then by tid
    name: str  # for all of them: worker-#
    frames: Sequence[Frame]  # innermost first; empty if the stack is not known
    missing: str  # why the stack is not known, a clause; "" if it is
    #: The stack was read a moment after the scan, while the threads went on.
    is_later: bool = False


class AllStacks(Struct, frozen=True):
    """All threads of one scan."""

    snapshot: Snapshot
    groups: Sequence[StackGroup]

    @property
    def count(self) -> int:
        """The number of threads."""
        return sum(len(group.threads) for group in self.groups)

    @property
    def unknown(self) -> int:
        """The number of threads without a known stack."""
        return sum(len(group.threads) for group in self.groups if group.missing)
