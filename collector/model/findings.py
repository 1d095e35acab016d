"""Findings: deadlocks, lock orders, misuses, patterns; and events of the flight recorder."""

from __future__ import annotations

from msgspec import Struct, field

from locktop.collector.model.kinds import BlockReason, Confidence, Kind, MisuseKind, PatternName


class DeadlockEdge(Struct, frozen=True, gc=False):
    """One thread of a cycle."""

    tid: int
    waits_for: int  # lock id
    held_by: int  # tid; 0 where nobody is left who could end the wait
    stack: int  # of this thread's wait
    site: int  # where held_by took the lock: return address, 0 unknown
    #: Why ``held_by`` blocks this thread. The JSON key is "how".
    reason: BlockReason = field(default=BlockReason.HELD, name="how")
    pid: int = 0  # that tid belongs to, 0: the process looked at

    @property
    def behind(self) -> bool:
        """Whether ``held_by`` does not hold it yet: it waits to write and goes first."""
        return self.reason is BlockReason.BEHIND


class Deadlock(Struct, frozen=True, gc=False):
    """A cycle in the wait-for graph that two looks showed unchanged; or one thread alone, which
    waits for what nobody is left to give."""

    certain: bool
    since_s: float  # how long ago the cycle closed: the shortest wait in it, seconds
    cycle: tuple[DeadlockEdge, ...]
    doubt: str = ""  # why it is not certain
    stuck: tuple[int, ...] = ()  # tids that wait for the cycle to go on, in order
    is_lower_bound: bool = False  # since_s: it had closed already when it was looked for first


class OrderEdge(Struct, frozen=True, gc=False):
    """``to`` was taken, or waited for, while ``from_`` was held."""

    from_: int  # lock id
    to: int  # lock id
    tid: int  # of a thread that did so, which may have ended since
    stack: int  # where ``to`` was taken
    site: int = 0  # where ``from_`` had been taken: return address, 0 unknown
    shared: bool = False  # ``to`` was wanted for reading
    from_shared: bool = False  # ``from_`` was held for reading


class OrderCycle(Struct, frozen=True, gc=False):
    """A cycle in the lock order: a potential deadlock. Each edge's ``to`` is the next one's
    ``from_``; each edge is another thread's, all of which could have been there at once."""

    locks: tuple[int, ...]
    edges: tuple[OrderEdge, ...]
    confidence: Confidence = Confidence.HIGH
    why: str = ""  # what is not known, where the confidence is not high
    #: Where no such cycle of locks was seen, only one of classes (analysis/lock_classes.py): their
    #: names. There an edge's ``to`` and the next one's ``from_`` may be two locks of one class.
    classes: tuple[str, ...] = ()


class Event(Struct, frozen=True, gc=False):
    """A contended acquisition, or a wait, that ended (from the flight recorder)."""

    tid: int
    lock: int
    kind: Kind
    ago_s: float  # since the wait began
    wait_s: float
    hold_s: float | None
    stack: int
    holder: int  # tid when the wait began, 0 unknown
    site: int
    timed_out: bool


class Mark(Struct, frozen=True, gc=False):
    """What a thread of the program said, and when (locktop_mark)."""

    tid: int
    ago_s: float
    text: str


class Misuse(Struct, frozen=True, gc=False):
    """What the program did with a lock against the rules, at one place."""

    kind: MisuseKind
    lock: int  # id
    tid: int  # who did it first
    #: tid of who had it then, 0 unknown (HELD_AT_FORK: a thread of the parent); TWO_MUTEXES: id of
    #: the other mutex.
    other: int
    stack: int  # KEPT_AT_END: one frame, where it was taken
    count: int  # RELEASED_OTHERS: at least
    ago_s: float  # since the first time


class Pattern(Struct, frozen=True, gc=False):
    """One that was seen."""

    name: PatternName
    lock: int  # id; 0: no single lock's
    tids: tuple[int, ...]  # of those it is seen by
    evidence: str  # the figures that tell it
    advice: str  # one sentence
