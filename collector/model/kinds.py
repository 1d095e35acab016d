"""The enumerations: kinds of lock with their traits, states of threads, classes of findings."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

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


#: The traits of each kind. A new kind needs a row here, and one in ``LT_KIND_ROWS`` of the library.
TRAITS: dict[Kind, KindTraits] = {
    Kind.MUTEX: KindTraits(
        contention=True, exclusive=True, signal_word="",
        listed=True, held_with_records=True, used_as_lock=True, orderable=True,
        owner_in_memory=True, owner_unnamed=False, owner_changes=True,
        held_across_processes=True, for_threads=False, blocked_unlisted=False,
        spins=False, event=False, inner=False, composite=False,
        may_give_up=False, takes_turns=False,
        posted_by_handlers=False, must_be_asleep=False,
        sleeps_for_ended=True, wakes_at_release=True, same_requests=False,
        uses_counted=False, has_lives=False, reserved=True, forgotten=True,
        named_by_stack=False, interpreter_lock=False,
    ),
    Kind.RWLOCK: KindTraits(
        contention=True, exclusive=False, signal_word="",
        listed=True, held_with_records=True, used_as_lock=True, orderable=True,
        owner_in_memory=True, owner_unnamed=False, owner_changes=True,
        held_across_processes=True, for_threads=False, blocked_unlisted=False,
        spins=False, event=False, inner=False, composite=False,
        may_give_up=False, takes_turns=True,
        posted_by_handlers=False, must_be_asleep=False,
        sleeps_for_ended=True, wakes_at_release=True, same_requests=False,
        uses_counted=False, has_lives=False, reserved=True, forgotten=False,
        named_by_stack=False, interpreter_lock=False,
    ),
    Kind.SPIN: KindTraits(
        contention=True, exclusive=True, signal_word="",
        listed=True, held_with_records=True, used_as_lock=True, orderable=True,
        owner_in_memory=False, owner_unnamed=True, owner_changes=False,
        held_across_processes=False, for_threads=False, blocked_unlisted=False,
        spins=True, event=False, inner=False, composite=False,
        may_give_up=False, takes_turns=False,
        posted_by_handlers=False, must_be_asleep=False,
        sleeps_for_ended=False, wakes_at_release=False, same_requests=False,
        uses_counted=False, has_lives=False, reserved=True, forgotten=False,
        named_by_stack=False, interpreter_lock=False,
    ),
    Kind.SEM: KindTraits(
        contention=False, exclusive=False, signal_word="posted",
        listed=False, held_with_records=False, used_as_lock=True, orderable=True,
        owner_in_memory=False, owner_unnamed=False, owner_changes=False,
        held_across_processes=False, for_threads=False, blocked_unlisted=True,
        spins=False, event=False, inner=True, composite=False,
        may_give_up=False, takes_turns=False,
        posted_by_handlers=True, must_be_asleep=True,
        sleeps_for_ended=False, wakes_at_release=True, same_requests=True,
        uses_counted=True, has_lives=True, reserved=True, forgotten=False,
        named_by_stack=True, interpreter_lock=False,
    ),
    Kind.COND: KindTraits(
        contention=False, exclusive=False, signal_word="signalled",
        listed=False, held_with_records=False, used_as_lock=False, orderable=False,
        owner_in_memory=False, owner_unnamed=False, owner_changes=False,
        held_across_processes=False, for_threads=False, blocked_unlisted=False,
        spins=False, event=True, inner=True, composite=False,
        may_give_up=False, takes_turns=False,
        posted_by_handlers=False, must_be_asleep=True,
        sleeps_for_ended=False, wakes_at_release=False, same_requests=True,
        uses_counted=True, has_lives=False, reserved=False, forgotten=False,
        named_by_stack=False, interpreter_lock=True,
    ),
    Kind.BARRIER: KindTraits(
        contention=False, exclusive=False, signal_word="",
        listed=False, held_with_records=False, used_as_lock=False, orderable=False,
        owner_in_memory=False, owner_unnamed=False, owner_changes=False,
        held_across_processes=False, for_threads=True, blocked_unlisted=True,
        spins=False, event=True, inner=False, composite=False,
        may_give_up=False, takes_turns=False,
        posted_by_handlers=False, must_be_asleep=True,
        sleeps_for_ended=False, wakes_at_release=False, same_requests=True,
        uses_counted=True, has_lives=False, reserved=False, forgotten=True,
        named_by_stack=False, interpreter_lock=False,
    ),
    Kind.JOIN: KindTraits(
        contention=False, exclusive=False, signal_word="",
        listed=False, held_with_records=False, used_as_lock=False, orderable=False,
        owner_in_memory=False, owner_unnamed=False, owner_changes=False,
        held_across_processes=False, for_threads=True, blocked_unlisted=True,
        spins=False, event=True, inner=False, composite=False,
        may_give_up=False, takes_turns=False,
        posted_by_handlers=False, must_be_asleep=True,
        sleeps_for_ended=False, wakes_at_release=False, same_requests=False,
        uses_counted=False, has_lives=False, reserved=False, forgotten=True,
        named_by_stack=False, interpreter_lock=False,
    ),
    Kind.ONCE: KindTraits(
        contention=True, exclusive=False, signal_word="",
        listed=True, held_with_records=False, used_as_lock=False, orderable=True,
        owner_in_memory=False, owner_unnamed=True, owner_changes=True,
        held_across_processes=False, for_threads=True, blocked_unlisted=True,
        spins=False, event=False, inner=False, composite=False,
        may_give_up=False, takes_turns=False,
        posted_by_handlers=False, must_be_asleep=False,
        sleeps_for_ended=True, wakes_at_release=False, same_requests=False,
        uses_counted=False, has_lives=False, reserved=False, forgotten=False,
        named_by_stack=False, interpreter_lock=False,
    ),
    Kind.FUTEX: KindTraits(
        contention=False, exclusive=False, signal_word="",
        listed=False, held_with_records=False, used_as_lock=False, orderable=False,
        owner_in_memory=False, owner_unnamed=False, owner_changes=True,
        held_across_processes=False, for_threads=False, blocked_unlisted=False,
        spins=False, event=False, inner=True, composite=False,
        may_give_up=False, takes_turns=False,
        posted_by_handlers=False, must_be_asleep=False,
        sleeps_for_ended=False, wakes_at_release=False, same_requests=False,
        uses_counted=False, has_lives=False, reserved=True, forgotten=True,
        named_by_stack=True, interpreter_lock=True,
    ),
    Kind.CUSTOM: KindTraits(
        contention=True, exclusive=False, signal_word="",
        listed=True, held_with_records=True, used_as_lock=True, orderable=True,
        owner_in_memory=False, owner_unnamed=False, owner_changes=False,
        held_across_processes=False, for_threads=False, blocked_unlisted=False,
        spins=True, event=False, inner=False, composite=True,
        may_give_up=True, takes_turns=False,
        posted_by_handlers=False, must_be_asleep=False,
        sleeps_for_ended=False, wakes_at_release=False, same_requests=False,
        uses_counted=False, has_lives=False, reserved=False, forgotten=False,
        named_by_stack=False, interpreter_lock=False,
    ),
}  # fmt: skip


def kinds_with(has: Callable[[KindTraits], bool]) -> frozenset[Kind]:
    """Return the kinds whose traits fulfil a condition."""
    return frozenset(kind for kind, traits in TRAITS.items() if has(traits))


# A scan looks up kinds thousands of times, so modules use these sets and not the table.
CONTENTION_KINDS = kinds_with(lambda traits: traits.contention)
SIGNALLED_KINDS = kinds_with(lambda traits: traits.signalled)
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
INTERPRETER_LOCK_KINDS = kinds_with(lambda traits: traits.interpreter_lock)


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


class RootKind(StrEnum):
    """The kinds of root of a blocking tree. The value is the word in JSON."""

    HOLDER = "holder"  # a thread that holds a lock, and does not wait in contention itself
    LOCK = "lock"  # a lock whose holder is not known
    CYCLE = "cycle"  # threads that wait for each other
