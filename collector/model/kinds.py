"""What is waited for, and how threads, waits and findings are classified: the enumerations."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """What is waited for; the value is the word in JSON and on the screen."""

    MUTEX = "mutex"
    RWLOCK = "rwlock"
    SPIN = "spin"
    SEM = "sem"
    COND = "cond"
    BARRIER = "barrier"
    JOIN = "join"
    ONCE = "once"
    FUTEX = "futex"
    CUSTOM = "custom"

    # Enum's own is written in Python, and kinds are looked up some thousand times in every look.
    __hash__ = str.__hash__


#: Kinds whose wait is contention unless a rule says otherwise (rules.py): somebody
#: holds what the waiter wants.
CONTENTION_KINDS = frozenset({Kind.MUTEX, Kind.RWLOCK, Kind.SPIN, Kind.ONCE, Kind.CUSTOM})

#: Kinds that no thread holds: somebody posts or signals them.
SIGNALLED_KINDS = frozenset({Kind.SEM, Kind.COND})


class BlockReason(StrEnum):
    """How a thread stands in the way of one that waits; the value is the word in JSON."""

    HELD = "held"  # it has the lock
    BEHIND = "behind"  # it does not hold it yet: it waits to write and goes first
    GOT = "got"  # sem: it got it and has not posted it
    RUNS = "runs"  # once: it runs the routine
    LIVES = "lives"  # join: it has not ended
    ABSENT = "absent"  # barrier: it has not come
    SIGNALS = "signals"  # sem, cond: it posts or signals it
    ABANDONED = "abandoned"  # it has ended, with the lock


class ThreadState(StrEnum):
    """What a thread does now."""

    RUNNING = "running"  # on a CPU
    RUNNABLE = "runnable"  # wants a CPU
    WAITING = "waiting"  # blocked: its wait is contention
    IDLE = "idle"  # waits for work: condition variable, semaphore, join, barrier, sleep, poll
    OTHER = "other"  # disk, stopped, not known


class ActivityState(StrEnum):
    """What the holder of a lock does."""

    WAITING = "waiting"  # for another lock, or for something else that the library knows of
    BLOCKED = "blocked"  # in a system call, or in the kernel for another reason
    RUNNING = "running"  # on a CPU, or wants one
    STOPPED = "stopped"  # by a signal or a tracer
    ENDED = "ended"  # and never gave it back
    UNKNOWN = "unknown"


class Confidence(StrEnum):
    """How sure it is that a potential deadlock can come about."""

    HIGH = "high"  # the same locks, by threads that could have met
    MEDIUM = "medium"  # if one thing is so that cannot be known
    LOW = "low"  # if several are, or one that often is not


class MisuseKind(StrEnum):
    """What pthreads does not allow; the value is the word in JSON."""

    RELEASED_OTHERS = "released_others"  # given back by one thread while another had it
    RELEASED_FREE = "released_free"  # given back while nobody had it
    TAKEN_AGAIN = "taken_again"  # asked for by the thread that has it, and is not recursive
    DESTROYED_HELD = "destroyed_held"
    DESTROYED_WAITED = "destroyed_waited"  # while it was waited for
    TWO_MUTEXES = "two_mutexes"  # waits for a condition with different mutexes at one time
    KEPT_AT_END = "kept_at_end"  # the thread ended and still had it
    HELD_AT_FORK = "held_at_fork"  # by another thread of the parent: nobody gives it back here


class PatternName(StrEnum):
    """A shape of contention that is known (docs/patterns.md); the value is the word in JSON."""

    CONVOY = "convoy"  # handing it on takes longer than what is done under it
    SERIALISED = "serialised"  # by one lock
    THUNDERING_HERD = "thundering_herd"  # many are woken where one is enough
    STARVED_WRITER = "starved_writer"  # by readers that come later
    LONG_HOLD = "long_hold"  # with a system call inside
    FALSE_IDLE = "false_idle"  # whoever would give them work waits for a lock
    OVERSUBSCRIBED = "oversubscribed"  # more threads than CPUs
    HIGH_RATE = "high_rate"  # taken very often, without contention

    @property
    def words(self) -> str:
        """As it is said."""
        return self.value.replace("_", " ")
