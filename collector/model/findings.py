"""Findings (deadlocks, lock orders, misuses, patterns) and the records of the flight recorder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct, field

from locktop.collector.model.kinds import BlockReason, Confidence, Kind, MisuseKind, PatternName

#: For readers of files: a cycle has at least one thread.
_SOME = Meta(min_length=1)


class DeadlockEdge(Struct, frozen=True, gc=False):
    """One thread of a cycle."""

    tid: int
    waits_for: int  # lock id
    held_by: int  # tid; 0: no thread is left that could end the wait
    stack: int  # id of the stack of this thread's wait
    site: int  # return address of the call in which ``held_by`` took the lock; 0: unknown
    #: Why ``held_by`` blocks this thread. The JSON key is "how".
    reason: BlockReason = field(default=BlockReason.HELD, name="how")
    pid: int = 0  # process of ``tid``; 0: the watched process

    @property
    def behind(self) -> bool:
        """Whether ``held_by`` does not hold the lock yet: it waits to write and goes first."""
        return self.reason is BlockReason.BEHIND


class Deadlock(Struct, frozen=True, gc=False):
    """A cycle in the wait-for graph that two readings showed unchanged.

    The cycle may be one thread alone, if no thread is left that could end its wait.
    """

    certain: bool
    since_s: float  # seconds since the cycle closed: the shortest wait of the cycle
    cycle: Annotated[tuple[DeadlockEdge, ...], _SOME]
    doubt: str = ""  # why the deadlock is not certain
    stuck: tuple[int, ...] = ()  # ids of the threads that wait for the cycle, in order
    #: ``stuck`` lacks threads that are behind an earlier deadlock, too
    stuck_in_part: bool = False
    #: ``since_s`` is a lower bound: the cycle had closed before the first scan
    is_lower_bound: bool = False


class Hang(Struct, frozen=True, gc=False):
    """All threads of the process wait, and only one of them could end any of the waits.

    No wait has a time limit. So nothing in the process ever runs again, whatever the locks are.
    """

    certain: bool  # nothing outside of the process can end a wait, either
    since_s: float  # seconds since the last of the waits began
    tids: tuple[int, ...]  # the threads that wait, in order of tid
    is_lower_bound: bool = False  # the wait had begun before the first scan
    doubt: str = ""  # what else may end a wait, if the hang is not certain
    #: By tid, the present value of the word that the thread waits for, if the value has changed.
    #: The thread need not wait, but nobody has woken it.
    changed_words: Mapping[int, int] = {}
    #: By tid, the call of a thread that waits for room in a pipe, or for data.
    calls: Mapping[int, str] = {}
    gil_waiters: tuple[int, ...] = ()  # the threads that wait for the lock of a Python interpreter


class OrderEdge(Struct, frozen=True, gc=False):
    """A thread took ``to``, or waited for it, while the thread held ``from_``."""

    from_: int  # lock id
    to: int  # lock id
    tid: int  # id of such a thread, which may have ended since
    stack: int  # id of the stack where ``to`` was taken
    site: int = 0  # return address of the call that took ``from_``; 0: unknown
    shared: bool = False  # ``to`` was wanted for reading
    from_shared: bool = False  # ``from_`` was held for reading


class OrderWay(Struct, frozen=True, gc=False):
    """The edges of a cycle in the lock order with other stacks, perhaps of other threads."""

    edges: tuple[OrderEdge, ...]
    confidence: Confidence = Confidence.HIGH
    why: str = ""  # as OrderCycle.why


class OrderCycle(Struct, frozen=True, gc=False):
    """A cycle in the lock order: a potential deadlock.

    Each edge's ``to`` is the next edge's ``from_``. Each edge belongs to another thread. All these
    threads could have been there at one time.
    """

    locks: Annotated[tuple[int, ...], _SOME]
    edges: Annotated[tuple[OrderEdge, ...], _SOME]
    confidence: Confidence = Confidence.HIGH
    why: str = ""  # what is unknown, if the confidence is not high
    #: Names of the lock classes (analysis/lock_classes.py), if only classes form the cycle. Then an
    #: edge's ``to`` and the next edge's ``from_`` may be two locks of one class.
    classes: tuple[str, ...] = ()
    ways: tuple[OrderWay, ...] = ()  # the same with other stacks, the highest confidence first
    ways_left_out: bool = False  # there may be more ways


class Event(Struct, frozen=True, gc=False):
    """A contended acquisition or a wait that ended, from the flight recorder."""

    tid: int
    lock: int
    kind: Kind
    ago_s: float  # seconds since the wait began
    wait_s: float
    hold_s: float | None
    stack: int
    holder: int  # id of the holder when the wait began; 0: unknown
    site: int
    timed_out: bool


class Mark(Struct, frozen=True, gc=False):
    """A text that a thread of the program recorded (locktop_mark)."""

    tid: int
    ago_s: float
    text: str


class Misuse(Struct, frozen=True, gc=False):
    """A forbidden use of a lock at one call site."""

    kind: MisuseKind
    lock: int  # id
    tid: int  # thread id of the first such use
    #: Thread id of the holder at that time; 0: unknown. HELD_AT_FORK: a thread of the parent.
    #: TWO_MUTEXES: id of the other mutex.
    other: int
    stack: int  # KEPT_AT_END: one frame, where the lock was taken
    count: int  # how often; RELEASED_OTHERS: a lower bound
    ago_s: float  # seconds since the first such use


class Pattern(Struct, frozen=True, gc=False):
    """One pattern of contention that the scan shows."""

    name: PatternName
    lock: int  # id; 0: no single lock
    tids: tuple[int, ...]  # ids of the threads that show it
    evidence: str  # the figures that show it
    advice: str  # one sentence
