"""A deadlock with all names and source locations side by side, and what would have avoided it.

``analysis/deadlock_report.py`` makes these records; ``format`` and ``export`` print them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from msgspec import Struct

from locktop.collector.model.kinds import BlockReason, Kind
from locktop.collector.model.snapshot import Process
from locktop.collector.model.stacks import Frame
from locktop.collector.model.threads import ThreadActivity


class Remedy(Enum):
    """The change that would avoid the deadlock."""

    ORDER = "order"  # to take the locks in one order
    ONE_LOCATION = "one location"  # the same, where one line of code takes all of them
    ONCE_ONLY = "once only"  # to take once a lock that a thread takes again
    RELEASE = "release"  # to release a lock before a wait that is for no lock
    GIVE_BACK = "give back"  # to release a lock before the thread that holds it ends
    NONE = "none"  # no order of locks helps, as where threads wait for each other's end


class LockingStep(Struct, frozen=True, gc=False):
    """The locks of one thread of the cycle: it took ``has`` and then wanted ``wants`` (lock
    ids)."""

    tid: int
    has: int
    wants: int
    has_at: Frame | None  # where the thread took ``has``
    wants_at: Frame | None  # where the thread waits for ``wants``
    duration_s: float  # seconds that the thread has waited

    @property
    def locations(self) -> tuple[Frame | None, Frame | None]:
        """The two lines of code."""
        return self.has_at, self.wants_at


class Avoidance(Struct, frozen=True, gc=False):
    """How the deadlock could have been avoided."""

    remedy: Remedy
    order: tuple[int, ...] = ()  # lock ids, the lock to take first at the front; () without one
    change: LockingStep | None = None  # the step that would have to change
    others: tuple[int, ...] = ()  # tids of the cycle that keep to the order already
    #: Threads beside the cycle that take the locks of ``change`` in the proposed order.
    elsewhere: int = 0


class LockName(Struct, frozen=True, gc=False):
    """A lock with a name that no other lock has."""

    id: int
    kind: Kind | None  # None: not known
    name: str


class Taken(Struct, frozen=True, gc=False):
    """A lock that a thread holds."""

    lock: LockName
    at: Frame | None  # where the thread took the lock
    duration_s: float | None  # seconds held, None where that was not measured
    shared: bool  # for reading
    wanted_by: tuple[int, ...]  # tids that wait for the lock
    is_lower_bound: bool = False  # of duration_s


class Member(Struct, frozen=True, gc=False):
    """A thread of the cycle: what it waits for, which thread holds that, and what it holds."""

    tid: int
    name: str
    waits_for: LockName
    duration_s: float  # seconds waited already
    is_lower_bound: bool  # the thread may have waited longer
    shared: bool  # for reading
    at: Frame | None  # the line of code that waits
    stack_id: int
    stack: tuple[Frame, ...]  # innermost first
    held_by: int  # tid, 0 nobody
    reason: BlockReason  # why ``held_by`` blocks this thread
    taken_at: Frame | None  # where ``held_by`` took the lock
    now: ThreadActivity | None  # what ``held_by`` does, where that was measured
    has: tuple[Taken, ...]  # in the order in which the thread took them


class Follower(Struct, frozen=True, gc=False):
    """A thread that is stuck behind the cycle."""

    tid: int
    name: str
    waits_for: LockName | None
    holders: tuple[int, ...]  # tids that hold ``waits_for``
    duration_s: float
    is_lower_bound: bool  # the thread may have waited longer
    at: Frame | None


class DeadlockReport(Struct, frozen=True, gc=False):
    """Everything that is known about one deadlock."""

    process: Process
    ended: bool  # the process is gone: it was deadlocked when it ended
    certain: bool
    doubt: str
    since_s: float
    is_lower_bound: bool  # the deadlock may be older
    since: str  # ISO 8601, UTC, seconds; "" where that is not known
    #: Each waits for the next one, the last for the first; or one alone, see is_circle.
    circle: tuple[Member, ...]
    is_circle: bool  # False: no thread is left that could end this thread's wait
    behind: tuple[Follower, ...]
    behind_in_part: bool  # ``behind`` lacks threads that are behind an earlier deadlock, too
    avoidance: Avoidance
    locks: Mapping[int, LockName]  # of the cycle, by id
    names: Mapping[int, str]  # of threads, by tid, those that have a name
    #: Semaphore of the whole circle, with all its units taken and not posted: the threads that wait
    #: for it. Then no thread waits for one certain thread. Empty: another deadlock.
    waiters: tuple[int, ...] = ()
    process_hangs: bool = False  # for certain, whatever the deadlock is
