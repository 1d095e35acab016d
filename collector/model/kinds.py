"""The enumerations: kinds of lock with their traits, states of threads, classes of findings."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

from msgspec import Struct


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
#: The same, of the lock inside each object of a free-threaded interpreter.
OBJECT_LOCK = "Lock of an object"


class KindTraits(Struct, frozen=True, kw_only=True):
    """All that the tool asks of a kind of lock. No trait has a default: each kind states each one.

    The library asks some of these traits too, and has them in ``native/include/locktop``.
    """

    # These traits tell who holds it, and who lets its waiters go on.
    contention: bool  # a holder has what the waiter wants; an idle rule may say otherwise
    exclusive: bool  # one thread alone can hold it at a time, and its waiters name that holder
    signal_word: str  # what threads do that let a waiter go on; "" if none does
    listed: bool  # it is in the held lists of its holders
    held_with_records: bool  # records of the ring have the begin and the end of each hold
    used_as_lock: bool  # threads hold it; a semaphore counts, for some programs use it as a lock
    orderable: bool  # threads acquire and release it, so the order of acquisitions can change
    owner_in_memory: bool  # the memory of the lock names the thread that owns it
    owner_unnamed: bool  # its holders list it, but its memory does not name them
    holder_sought: bool  # no memory names all its holders: the code of threads tells probable ones
    owner_changes: bool  # another thread may become its owner while a waiter sleeps
    held_across_processes: bool  # a wait for a holder in another process is known
    for_threads: bool  # its waits are for threads that do not list a lock
    blocked_unlisted: bool  # a thread may block its waiters and not list it
    # These traits tell how threads wait for it.
    spins: bool  # its waiters may use a CPU
    event: bool  # its waits are for an event, and say nothing about a lock
    inner: bool  # its waits may be a part of a wait for a composite lock
    composite: bool  # the program makes it of inner kinds, so a wait for it has waits inside
    may_give_up: bool  # no call says whether a wait for it has a time limit
    takes_turns: bool  # readers and writers take turns: a waiter may go before another one
    posted_by_handlers: bool  # a signal handler may let its waiters go on
    must_be_asleep: bool  # a woken waiter shows the wait until it runs: only sleepers wait
    sleeps_for_ended: bool  # a wait for a thread that has ended is real only if the waiter sleeps
    wakes_at_release: bool  # its release wakes a waiter, if there is one
    woken: bool  # a thread that wakes its waiters may have held it, and is charged with their waits
    same_requests: bool  # all its waiters have the same requests
    # These traits tell what is counted and named.
    uses_counted: bool  # the tool counts the uses of each thread while a thread waits for it
    has_lives: bool  # its uses are counted anew when the program makes it anew
    reserved: bool  # the library keeps room for it, for waits after the tables are full
    forgotten: bool  # it counts as unknown once its memory does not match any more
    named_by_stack: bool  # names of functions tell whether it is a lock
    interpreter_lock: bool  # Python's GIL may appear as this kind

    @property
    def signalled(self) -> bool:
        """Whether threads post or signal it; then it has no holder."""
        return bool(self.signal_word)

    @property
    def readers_unnamed(self) -> bool:
        """Whether its memory names its owner, and not the threads that hold it together."""
        return self.owner_in_memory and not self.exclusive


#: The traits of each kind: "x" if a kind has one, "." if not. A new kind needs a column here, and a
#: row in ``LT_KIND_ROWS`` of the library. Of ``signal_word`` the table has the word itself.
_TABLE = """
                       MUTEX RWLOCK SPIN SEM    COND      BARRIER JOIN ONCE FUTEX CUSTOM
contention             x     x      x    .      .         .       .    x    .     x
exclusive              x     .      x    .      .         .       .    .    .     .
signal_word            .     .      .    posted signalled .       .    .    .     .
listed                 x     x      x    .      .         .       .    x    .     x
held_with_records      x     x      x    .      .         .       .    .    .     x
used_as_lock           x     x      x    x      .         .       .    .    .     x
orderable              x     x      x    x      .         .       .    x    .     x
owner_in_memory        x     x      .    .      .         .       .    .    .     .
owner_unnamed          .     .      x    .      .         .       .    x    .     .
holder_sought          .     x      .    .      x         .       .    .    x     .
owner_changes          x     x      .    .      .         .       .    x    x     .
held_across_processes  x     x      .    .      .         .       .    .    .     .
for_threads            .     .      .    .      .         x       x    x    .     .
blocked_unlisted       .     .      .    x      .         x       x    x    .     .
spins                  .     .      x    .      .         .       .    .    .     x
event                  .     .      .    .      x         x       x    .    .     .
inner                  .     .      .    x      x         .       .    .    x     .
composite              .     .      .    .      .         .       .    .    .     x
may_give_up            .     .      .    .      .         .       .    .    .     x
takes_turns            .     x      .    .      .         .       .    .    .     .
posted_by_handlers     .     .      .    x      .         .       .    .    .     .
must_be_asleep         .     .      .    x      x         x       x    .    .     .
sleeps_for_ended       x     x      .    .      .         .       .    x    .     .
wakes_at_release       x     x      .    x      .         .       .    .    .     .
woken                  .     .      .    x      .         .       .    .    x     .
same_requests          .     .      .    x      x         x       .    .    .     .
uses_counted           .     .      .    x      x         x       .    .    .     .
has_lives              .     .      .    x      .         .       .    .    .     .
reserved               x     x      x    x      .         .       .    .    x     .
forgotten              x     .      .    .      .         x       x    .    x     .
named_by_stack         .     .      .    x      .         .       .    .    x     .
interpreter_lock       .     .      .    .      x         .       .    .    x     .
"""


def _traits_by_kind() -> dict[Kind, KindTraits]:
    head, *rows = [line.split() for line in _TABLE.strip().splitlines()]
    traits: dict[Kind, dict[str, Any]] = {Kind[name]: {} for name in head}
    for trait, *cells in rows:
        for by_name, cell in zip(traits.values(), cells, strict=True):
            if trait == "signal_word":
                by_name[trait] = cell.strip(".")
            else:
                by_name[trait] = {"x": True, ".": False}[cell]
    return {kind: KindTraits(**by_name) for kind, by_name in traits.items()}


TRAITS = _traits_by_kind()


def kinds_with(has: Callable[[KindTraits], bool]) -> frozenset[Kind]:
    """Return the kinds whose traits fulfil a condition."""
    return frozenset(kind for kind, traits in TRAITS.items() if has(traits))


# A scan looks up kinds thousands of times, so modules use these sets and not the table.
CONTENTION_KINDS = kinds_with(lambda traits: traits.contention)
SIGNALLED_KINDS = kinds_with(lambda traits: traits.signalled)
WOKEN_KINDS = kinds_with(lambda traits: traits.woken)
#: Of these, the counters have holds: from the end of a wait to the wake of the next waiter.
TIMED_BY_WAKES_KINDS = kinds_with(lambda traits: traits.woken and not traits.signalled)
EXCLUSIVE_KINDS = kinds_with(lambda traits: traits.exclusive)
LISTED_KINDS = kinds_with(lambda traits: traits.listed)
HELD_KINDS = kinds_with(lambda traits: traits.held_with_records)
USED_AS_LOCK_KINDS = kinds_with(lambda traits: traits.used_as_lock)
ORDERABLE_KINDS = kinds_with(lambda traits: traits.orderable)
OWNER_IN_MEMORY_KINDS = kinds_with(lambda traits: traits.owner_in_memory)
READERS_UNNAMED_KINDS = kinds_with(lambda traits: traits.readers_unnamed)
OWNER_UNNAMED_KINDS = kinds_with(lambda traits: traits.owner_unnamed)
OWNER_CHANGES_KINDS = kinds_with(lambda traits: traits.owner_changes)
ACROSS_PROCESSES_KINDS = kinds_with(lambda traits: traits.held_across_processes)
FOR_THREADS_KINDS = kinds_with(lambda traits: traits.for_threads)
BLOCKED_UNLISTED_KINDS = kinds_with(lambda traits: traits.blocked_unlisted)
SPINNING_KINDS = kinds_with(lambda traits: traits.spins)
MAY_GIVE_UP_KINDS = kinds_with(lambda traits: traits.may_give_up)
TURNS_KINDS = kinds_with(lambda traits: traits.takes_turns)
POSTED_BY_HANDLERS_KINDS = kinds_with(lambda traits: traits.posted_by_handlers)
MUST_BE_ASLEEP_KINDS = kinds_with(lambda traits: traits.must_be_asleep)
SLEEPS_FOR_ENDED_KINDS = kinds_with(lambda traits: traits.sleeps_for_ended)
WAKES_AT_RELEASE_KINDS = kinds_with(lambda traits: traits.wakes_at_release)
SAME_REQUESTS_KINDS = kinds_with(lambda traits: traits.same_requests)
USES_COUNTED_KINDS = kinds_with(lambda traits: traits.uses_counted)
LIVES_KINDS = kinds_with(lambda traits: traits.has_lives)
FORGOTTEN_KINDS = kinds_with(lambda traits: traits.forgotten)
NAMED_BY_STACK_KINDS = kinds_with(lambda traits: traits.named_by_stack)
HOLDER_SOUGHT_KINDS = kinds_with(lambda traits: traits.holder_sought)
INTERPRETER_LOCK_KINDS = kinds_with(lambda traits: traits.interpreter_lock)


class BlockReason(StrEnum):
    """Why a thread blocks another one. The value is the word in JSON."""

    HELD = "held"  # it holds the lock
    PROBABLY_HELD = "probably_held"  # it probably holds the lock, see ProbableHolder
    BEHIND = "behind"  # it waits to write and goes first; it does not hold the lock yet
    GOT = "got"  # semaphore: it acquired the semaphore and has not posted it
    RUNS = "runs"  # once: it runs the routine
    LIVES = "lives"  # join: it has not ended
    ABSENT = "absent"  # barrier: it has not arrived
    SIGNALS = "signals"  # semaphore, condition: it posts or signals the object
    ABANDONED = "abandoned"  # it ended while it held the lock
    #: semaphore: a thread of the parent had acquired it at the fork; it alone may have done so too
    AT_FORK = "at_fork"


class HolderEvidence(StrEnum):
    """Why a thread probably holds a lock that names no holder."""

    #: the code of the thread goes on to release the lock, and need not take it before
    GUARD = "guard"
    #: the thread was the last that got the lock after a wait, and has woken no waiter since
    WAKER = "waker"
    #: the thread is in a block of Python that releases the lock at its end
    PYTHON = "python"


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
    PERHAPS_STARVED = "perhaps_starved"  # the same of a sampled lock, which names no reader
    LONG_HOLD = "long_hold"  # a hold with a system call inside
    FALSE_IDLE = "false_idle"  # idle threads, while their producer waits for a lock
    OVERSUBSCRIBED = "oversubscribed"  # more threads than CPUs
    CPU_STARVED = "cpu_starved"  # the lock is free, and the next thread has no CPU
    CONTENDED = "contended"  # threads queue for a sampled lock in nearly all samples
    HIGH_RATE = "high_rate"  # acquired very often, without contention
    NO_SIGNAL = "no_signal"  # long waits for a condition that no signal has reached

    @property
    def words(self) -> str:
        """The name with blanks, for sentences."""
        return self.value.replace("_", " ").replace("cpu", "CPU")

    @property
    def heading(self) -> str:
        """The name at the begin of a line."""
        return self.words[0].upper() + self.words[1:]


class ChildEvent(StrEnum):
    """The deeds of a child that threads wait for. The value is the word in JSON."""

    END = "end"
    OUTPUT = "output"  # a write to a pipe that the thread reads
    INPUT = "input"  # a read from a pipe that is full


class RootKind(StrEnum):
    """The kinds of root of a blocking tree. The value is the word in JSON."""

    HOLDER = "holder"  # a thread that holds a lock, and does not wait in contention itself
    LOCK = "lock"  # a lock whose holder is not known
    CYCLE = "cycle"  # threads that wait for each other
