"""The things that the details of the monitor can be about."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct


class Topic(Enum):
    """The kinds of things that the details can be about."""

    LOCK = "lock"  # a lock, or a class of locks
    THREAD = "thread"  # a thread, or a group of threads
    BLOCKING = "blocking"  # a row of the blocking tree
    DEADLOCKS = "deadlocks"
    LOCK_ORDERS = "lock orders"  # the potential deadlocks


class DetailsSubject(Struct, frozen=True):
    """One thing that the details are about."""

    topic: Topic
    #: Id of a row of a list of locks or threads. Of deadlocks the number from 1, 0 for all.
    row: int = 0
    #: Id of the lock that the thread held when it was chosen as its holder; 0: it was not.
    lock: int = 0

    @property
    def identity(self) -> tuple[Topic, int]:
        """The thing itself, whatever led to it."""
        return self.topic, self.row
