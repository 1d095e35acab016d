"""The enumerations: kinds of lock, states of threads, classes of findings."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """The kind of a waited-for object. The value is the word in JSON and on the screen."""

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

    # The hash of Enum is Python code, and each scan looks up kinds and states thousands of times.
    __hash__ = str.__hash__


#: The names of Python's locks begin with this word. A ``threading.Lock`` is of kind SEM.
PYTHON_LOCK = "Lock"

#: Kinds whose waits are contention unless an idle rule says otherwise (analysis/idle/rules.py). A
#: thread holds the lock that the waiter wants.
CONTENTION_KINDS = frozenset({Kind.MUTEX, Kind.RWLOCK, Kind.SPIN, Kind.ONCE, Kind.CUSTOM})

#: Kinds without a holder: other threads post or signal them.
SIGNALLED_KINDS = frozenset({Kind.SEM, Kind.COND})


class BlockReason(StrEnum):
    """Why a thread blocks another one. The value is the word in JSON."""

    HELD = "held"  # it holds the lock
    BEHIND = "behind"  # it waits to write and goes first; it does not hold the lock yet
    GOT = "got"  # semaphore: it acquired the semaphore and has not posted it
    RUNS = "runs"  # once: it runs the routine
    LIVES = "lives"  # join: it has not ended
    ABSENT = "absent"  # barrier: it has not arrived
    SIGNALS = "signals"  # semaphore, condition: it posts or signals the object
    ABANDONED = "abandoned"  # it ended while it held the lock
    #: semaphore: a thread of the parent had acquired it at the fork; it alone may have done so too
    AT_FORK = "at_fork"


class ThreadState(StrEnum):
    """The state of a thread at the time of the scan."""

    RUNNING = "running"  # on a CPU
    RUNNABLE = "runnable"  # ready, but without a CPU
    WAITING = "waiting"  # blocked in contention
    IDLE = "idle"  # waits for work: condition variable, semaphore, join, barrier, sleep, poll
    OTHER = "other"  # disk, stopped, or unknown

    __hash__ = str.__hash__  # as in Kind


class ActivityState(StrEnum):
    """The state of the holder of a lock."""

    WAITING = "waiting"  # for another lock or another object that the library observes
    BLOCKED = "blocked"  # in a system call, or in the kernel for another reason
    RUNNING = "running"  # on a CPU, or ready to run
    STOPPED = "stopped"  # by a signal or a tracer
    ENDED = "ended"  # the thread ended and never released the lock
    UNKNOWN = "unknown"


class Confidence(StrEnum):
    """How likely a potential deadlock can become a real one."""

    HIGH = "high"  # the same locks, by threads that could have run at one time
    MEDIUM = "medium"  # one condition for the deadlock is unknown
    LOW = "low"  # several conditions are unknown, or one that seldom holds


class MisuseKind(StrEnum):
    """Uses of locks that pthreads forbids. The value is the word in JSON."""

    RELEASED_OTHERS = "released_others"  # released by one thread while another held the lock
    RELEASED_FREE = "released_free"  # released while no thread held the lock
    TAKEN_AGAIN = "taken_again"  # acquired by its own holder, though the lock is not recursive
    DESTROYED_HELD = "destroyed_held"
    DESTROYED_WAITED = "destroyed_waited"  # destroyed while a thread waited
    TWO_MUTEXES = "two_mutexes"  # threads wait for one condition with different mutexes
    WAITED_UNHELD = "waited_unheld"  # a condition wait with a mutex that the thread did not hold
    KEPT_AT_END = "kept_at_end"  # the thread ended while it held the lock
    #: held by another thread of the parent: no thread of the child releases it
    HELD_AT_FORK = "held_at_fork"


class PatternName(StrEnum):
    """A known shape of contention (docs/patterns.md). The value is the word in JSON."""

    CONVOY = "convoy"  # the hand-over takes longer than the critical section
    SERIALISED = "serialised"  # one lock serialises the threads
    THUNDERING_HERD = "thundering_herd"  # many threads wake where one is enough
    STARVED_WRITER = "starved_writer"  # readers that arrive later overtake a writer
    LONG_HOLD = "long_hold"  # a hold with a system call inside
    FALSE_IDLE = "false_idle"  # idle threads, while their producer waits for a lock
    OVERSUBSCRIBED = "oversubscribed"  # more threads than CPUs
    HIGH_RATE = "high_rate"  # acquired very often, without contention
    NO_SIGNAL = "no_signal"  # long waits for a condition that no signal has reached

    @property
    def words(self) -> str:
        """The name with blanks, for sentences."""
        return self.value.replace("_", " ")


class ProfileState(StrEnum):
    """Whether a profile that the program makes of itself runs, or why it does not."""

    STOPPED = "stopped"
    RUNNING = "running"
    UNLOADED = "unloaded"  # dlclose() removed code of a region
    TAKEN_OVER = "taken over"  # the program installed a handler for the profile's signal


class RootKind(StrEnum):
    """The kinds of root of a blocking tree. The value is the word in JSON."""

    HOLDER = "holder"  # a thread that holds a lock, and does not wait in contention itself
    LOCK = "lock"  # a lock whose holder is not known
    CYCLE = "cycle"  # threads that wait for each other
