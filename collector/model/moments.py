"""Records with an absolute time, for history, recordings and time lines.

Times are nanoseconds since 1970, UTC (``_ns``), by the clock of the machine that was watched.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from locktop.collector.model.kinds import Kind


class NotableKind(StrEnum):
    """Why a moment is worth a jump."""

    DEADLOCK = "deadlock"  # a certain deadlock was found
    WAIT = "long wait"  # a wait in contention became long
    MARK = "mark"  # the program or the user set a mark
    ENDED = "ended"  # the process ended


#: The kinds of alerts.
ALERTS = (NotableKind.DEADLOCK, NotableKind.WAIT)


class Notable(Struct, frozen=True, gc=False):
    """A moment that is worth a jump."""

    time_ns: int
    kind: NotableKind
    text: str  # one line, with the names of that time
    tid: int = 0
    lock: int = 0  # id


class WaitRecord(Struct, frozen=True, gc=False):
    """One wait for a lock that is over, or a hold without a wait, from a ring or from samples."""

    tid: int
    lock: int  # id, as in Lock.id
    kind: Kind
    began_ns: int  # the wait began; without a wait: the thread got the lock
    wait_ns: int  # 0: no wait
    hold_ns: int | None  # time from the end of the wait to the release; None: unknown
    stack: int  # id of the wait's stack, 0 unknown
    holder: int  # id of the holder when the wait began; 0: unknown
    site: int  # return address of the call
    timed_out: bool = False
    is_shared: bool = False  # a reader of an rwlock
    #: from samples: the begin and the end are as exact as the interval of the scans
    is_sampled: bool = False
    #: A wake of the waiters of a futex or a semaphore, which may be no lock, at ``end_ns``.
    #: ``hold_ns`` is the time since the thread's own wait, and ``stack`` is that of the wake.
    is_release: bool = False

    @property
    def got_ns(self) -> int:
        """When the wait was over."""
        return self.began_ns + self.wait_ns

    @property
    def end_ns(self) -> int:
        """When the thread released the lock; the end of the wait, if that is unknown."""
        return self.got_ns + (self.hold_ns or 0)


class MarkRecord(Struct, frozen=True, gc=False):
    """A text that a thread of the program recorded (locktop_mark), from a ring."""

    tid: int
    time_ns: int
    text: str


class SignalRecord(Struct, frozen=True, gc=False):
    """One post of a semaphore, or one signal or broadcast of a condition, from a ring."""

    tid: int  # the thread that signalled
    lock: int  # id, as in Lock.id
    kind: Kind
    time_ns: int  # when the thread called
    wakes_all: bool = False  # a broadcast
