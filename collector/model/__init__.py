"""The model: what one look at a process showed, as plain immutable data.

Nothing here knows where the data came from (a preloaded process, /proc, a recording) or who
draws it. Times are seconds as floats, addresses are ints, ids are ints. A ``Snapshot`` may be
handed to another thread; it never changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


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


class How(StrEnum):
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


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a call stack. ``function`` is "" where no symbol was found (yet)."""

    address: int
    function: str
    file: str | None
    line: int | None
    module: str  # base name of the mapped file, "" if none
    offset: int  # of the address in the module's file, for module+0xoffset
    inlined: bool = False  # into the next frame out, which has the same address


class Wait(NamedTuple):  # as is TimeSplit
    """A wait that is going on."""

    lock: int  # id
    kind: Kind
    for_s: float  # how long already, seconds
    holders: tuple[int, ...]  # tids, as far as known
    stack: int  # id of the waiter's stack, 0 unknown; of this wait alone from 2**32 on
    site: int  # return address of the waiting call
    seq: int  # differs for each wait of a thread
    timed: bool = False  # gives up by itself
    shared: bool = False  # wants an rwlock for reading
    holder_seen: int = 0  # tid that owned the lock when the wait began, 0 unknown
    pshared: bool = False  # another process may end it
    awaits: int = 0  # join: tid of the thread whose end is awaited, 0 unknown
    parties: int = 0  # barrier: how many it lets go at once
    idle: bool = False  # for work, not because somebody holds the lock: no contention
    at_least: bool = False  # for_s: it had begun already when it was seen first


@dataclass(frozen=True, slots=True)
class UnseenWait:
    """A wait in a futex call that the kernel shows and the library does not see: it is compiled
    into the program or inside the C library, or began before anything was watched."""

    tid: int
    address: int = 0  # of the futex, 0 unknown
    name: str = ""  # of the variable that it is, "" if none is known
    for_s: float | None = None  # how long at least, as the looks saw it; None unknown
    stack: int = 0  # id, 0 unknown
    type: str = ""  # what its functions say is waited for, as "OpenMP lock"
    idle: bool | None = None  # for work, as a rule says of its functions; None: none does
    why: str = ""  # that rule


class Use(NamedTuple):
    """What a thread did at a lock that nobody owns."""

    lock: int  # id
    acquisitions: int  # sem: how often it got it; cond, barrier: waits that returned
    signals: int = 0  # sem: posts; cond: signals and broadcasts


class Held(NamedTuple):
    """A lock that a thread holds now."""

    lock: int  # id
    site: int  # return address of the acquiring call
    for_s: float | None  # seconds held, None where this hold is not timed
    depth: int = 0  # recursive acquisitions beyond the first
    shared: bool = False


class TimeSplit(NamedTuple):  # a tuple: there is one for each thread in each look
    """Where the wall clock of a thread went in the last interval: shares of it, 0..1, that add up
    to 1. analysis/time_split.py says what goes where two of them overlap."""

    cpu: float = 0.0  # on a CPU, spinning for a lock too
    runnable: float = 0.0  # wanted a CPU and had none
    contended: float = 0.0  # asleep, for a lock
    idle: float = 0.0  # asleep, for work: waits that the library sees
    disk: float = 0.0  # asleep, for a block device
    other: float = 0.0  # asleep for anything else, stopped, and what of the others is not known
    #: Those of the above of which not all is known: what is missing there lies in ``other``.
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Switches:
    """How often a thread lost its CPU, and moved to another one, since it began."""

    voluntary: int  # it went to sleep
    involuntary: int  # another one was put in its place
    migrations: int | None  # None where the kernel does not tell


@dataclass(frozen=True, slots=True)
class Counter:
    """One event that the processor or the kernel counts for a thread."""

    name: str  # as perf-list(1) has it
    unit: str  # "s" for times, "" for counts
    total: float | None  # since counting began; None: not counted
    per_s: float = 0.0  # in the last interval
    why: str = ""  # why it is not counted, or what the figure leaves out


@dataclass(frozen=True, slots=True)
class Counters:
    """Those of one thread, counted since it was asked for."""

    for_s: float  # seconds
    counters: tuple[Counter, ...]


class Thread(NamedTuple):  # as is TimeSplit
    """One thread; the figures cover its life, ``*_share`` and rates the last interval."""

    tid: int
    name: str
    alive: bool
    state: ThreadState
    waiting_for: Wait | None
    holds: tuple[Held, ...]
    wait_s: Mapping[Kind, float]  # a wait that is going on included
    cpu_s: float
    acquisitions: int
    contended: int
    #: Of the last interval spent waiting, 0..1: waits that are over by their kind, the one that is
    #: going on by what it is.
    wait_share: float = 0.0  # in contention
    idle_share: float = 0.0  # in the other waits
    cpu_share: float = 0.0  # of the last interval on a CPU, 0..1
    #: At semaphores, conditions and barriers that somebody waits for now; None: not all is known.
    uses: tuple[Use, ...] | None = ()
    #: Whether, if there are such, it has signalled conditions or posted what it had not got.
    signals: bool = False
    pid: int = 0  # of another process that shares locks with the one looked at
    #: None in the first look and for a dead thread.
    time: TimeSplit | None = None
    #: Of threads that were asked about closely (Source.follow), and all in a look that resolves.
    switches: Switches | None = None
    counters: Counters | None = None  # of the thread that is followed
    #: Of those that were asked closely and wait for nothing that is told in ``waiting_for``.
    now: ThreadNow | None = None

    @property
    def stack(self) -> int:
        """Id of the stack of the wait that it is in, or of what it does else; 0 unknown."""
        if self.waiting_for is not None:
            return self.waiting_for.stack
        return self.now.stack if self.now is not None else 0


class WaitStack(NamedTuple):
    """Where waits for one lock came from; an exact counter."""

    stack: int
    count: int  # type: ignore[assignment]  # a tuple's method of this name is of no use here
    wait_s: float
    idle: bool = False  # waits for work


class Blame(NamedTuple):
    """Wait time charged to a holder and where it took the lock."""

    tid: int  # 0: threads that ended; with a site of 0: nobody, or nobody that is known
    site: int  # return address of the acquiring call, 0 unknown
    wait_s: float
    through: int = 0  # id of the lock that the holder waited for itself meanwhile, 0: none

    @property
    def holder(self) -> tuple[int, int, int]:
        """Who it is charged to."""
        return self.tid, self.site, self.through

    @property
    def nameless(self) -> str:
        """What to call the holder where it is no thread that can be named, else ""."""
        if self.tid:
            return ""
        return "threads that ended" if self.site else "no holder known"


class Doing(StrEnum):
    """What the holder of a lock does."""

    WAITING = "waiting"  # for another lock, or for something else that the library knows of
    BLOCKED = "blocked"  # in a system call, or in the kernel for another reason
    RUNNING = "running"  # on a CPU, or wants one
    STOPPED = "stopped"  # by a signal or a tracer
    ENDED = "ended"  # and never gave it back
    UNKNOWN = "unknown"


class ThreadNow(NamedTuple):  # as is TimeSplit
    """What a thread does at this moment, as the kernel tells it."""

    tid: int
    doing: Doing
    call: str = ""  # blocked: the system call's name; "" where there is none, or it may not be seen
    what: str = ""  # the call with what it is about, as far as known: "write(7 -> /var/lib/x/wal)"
    for_s: float = 0.0  # blocked: how long, as the looks saw it, seconds
    stack: int = 0  # id of its stack, 0 unknown
    stack_age_s: float = 0.0  # 0: it has that stack now; else it was seen asleep so, so long ago
    cpu: float | None = None  # running: share of the last interval that it was on a CPU
    at_least: bool = False  # for_s: it was in its call already when it was asked first


class LockRates(NamedTuple):
    """One lock in the last interval, per second of it."""

    acquisitions: float = 0.0
    contended: float = 0.0
    wait: float = 0.0  # seconds waited, by all threads together, per second
    hold: float = 0.0  # seconds held per second
    signals: float = 0.0
    unheld: float = 0.0  # of ``wait``, while nobody had it or nobody is known to


class Lock(NamedTuple):
    """One lock since the process started."""

    id: int
    address: int
    kind: Kind
    name: str  # given by the program, else data symbol, else where contended, else address
    acquisitions: int
    contended: int
    trylock_failed: int
    wait_s: float  # waits that are going on included
    wait_max_s: float
    hold_s: float  # exact where hold_timed == acquisitions, else scaled up
    hold_timed: int
    hold_max_s: float  # of the holds that were timed
    holders: tuple[int, ...]  # tids
    waiters: tuple[int, ...]  # tids, the longest wait first
    wait_stacks: tuple[WaitStack, ...]  # most wait first
    blame: tuple[Blame, ...] = ()
    signals: int = 0  # sem: posts; cond: signals and broadcasts; by threads of this process
    unheard: int = 0  # cond: of these, at least, those for which nobody waited
    destroyed: bool = False
    rates: LockRates = LockRates()
    recursive: bool = False  # its holder may take it again
    writers_first: bool = False  # an rwlock whose readers queue behind a writer that waits
    foreign_releases: bool = False  # released by threads that did not hold it: holders may be wrong
    generation: int = 0  # how often its address was initialised again
    first_value: int = -1  # sem: what it was initialised to, -1 unknown
    freed_at_exit: bool = False  # mutex: the kernel frees it when its owner ends (robust, PI)
    used_as_lock: bool = False  # sem: only threads that had got it have posted it, as far as known
    idle: bool = False  # all that is known of its waits is that they were for work
    idle_s: float = 0.0  # of wait_s, in waits for work
    wait_error_s: float = 0.0  # of wait_s where it was sampled: one standard deviation
    holder_now: ThreadNow | None = None  # where others wait for it and it is known who has it
    type: str = ""  # futex: what the functions of its waiters say it is, as "Rust Mutex"


@dataclass(frozen=True, slots=True)
class DeadlockEdge:
    """One thread of a cycle."""

    tid: int
    waits_for: int  # lock id
    held_by: int  # tid; 0 where nobody is left who could end the wait
    stack: int  # of this thread's wait
    site: int  # where held_by took the lock: return address, 0 unknown
    how: How = How.HELD  # held_by stands in its way
    pid: int = 0  # that tid belongs to, 0: the process looked at

    @property
    def behind(self) -> bool:
        """Whether ``held_by`` does not hold it yet: it waits to write and goes first."""
        return self.how is How.BEHIND


@dataclass(frozen=True, slots=True)
class Deadlock:
    """A cycle in the wait-for graph that two looks showed unchanged; or one thread alone, which
    waits for what nobody is left to give."""

    certain: bool
    since_s: float  # how long ago the cycle closed: the shortest wait in it, seconds
    cycle: tuple[DeadlockEdge, ...]
    doubt: str = ""  # why it is not certain
    stuck: tuple[int, ...] = ()  # tids that wait for the cycle to go on, in order
    at_least: bool = False  # since_s: it had closed already when it was looked for first


class Confidence(StrEnum):
    """How sure it is that a potential deadlock can come about."""

    HIGH = "high"  # the same locks, by threads that could have met
    MEDIUM = "medium"  # if one thing is so that cannot be known
    LOW = "low"  # if several are, or one that often is not


@dataclass(frozen=True, slots=True)
class OrderEdge:
    """``to`` was taken, or waited for, while ``from_`` was held."""

    from_: int  # lock id
    to: int  # lock id
    tid: int  # of a thread that did so, which may have ended since
    stack: int  # where ``to`` was taken
    site: int = 0  # where ``from_`` had been taken: return address, 0 unknown
    shared: bool = False  # ``to`` was wanted for reading
    from_shared: bool = False  # ``from_`` was held for reading


@dataclass(frozen=True, slots=True)
class OrderCycle:
    """A cycle in the lock order: a potential deadlock. Each edge's ``to`` is the next one's
    ``from_``; each edge is another thread's, all of which could have been there at once."""

    locks: tuple[int, ...]
    edges: tuple[OrderEdge, ...]
    confidence: Confidence = Confidence.HIGH
    why: str = ""  # what is not known, where the confidence is not high
    #: Where no such cycle of locks was seen, only one of classes (analysis/lock_classes.py): their
    #: names. There an edge's ``to`` and the next one's ``from_`` may be two locks of one class.
    classes: tuple[str, ...] = ()


class Event(NamedTuple):
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


@dataclass(frozen=True, slots=True)
class Mark:
    """What a thread of the program said, and when (locktop_mark)."""

    tid: int
    ago_s: float
    text: str


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


@dataclass(frozen=True, slots=True)
class Misuse:
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


@dataclass(frozen=True, slots=True)
class Pattern:
    """One that was seen."""

    name: PatternName
    lock: int  # id; 0: no single lock's
    tids: tuple[int, ...]  # of those it is seen by
    evidence: str  # the figures that tell it
    advice: str  # one sentence


@dataclass(frozen=True, slots=True)
class Process:
    """The process looked at."""

    pid: int
    comm: str
    cmdline: tuple[str, ...]
    exe: str
    started_at: str  # ISO 8601, UTC
    cpu_share: float = 0.0  # cores used in the last interval
    rss_bytes: int = 0
    cpus: int = 0  # that it may run on, 0 unknown


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything one look showed.

    ``threads`` are in order of tid; ``locks`` by wait, then contended, then acquisitions, most
    first, the idle ones after the others. ``stacks`` maps the ids used above to frames, innermost
    first; frames whose names are still being looked up have an empty ``function``. ``sites`` maps
    single return addresses to the innermost frame that is no wrapper (symbols/wrappers.py).
    """

    taken_at: str  # ISO 8601, UTC, milliseconds
    host: str
    source: str  # "preload", "proc", "recording"
    duration_s: float  # seconds looked at
    interval_s: float  # since the snapshot before, what rates and shares refer to
    process: Process
    threads: tuple[Thread, ...]
    locks: tuple[Lock, ...]
    deadlocks: tuple[Deadlock, ...] = ()
    lock_order: tuple[OrderCycle, ...] = ()  # the surest first, of these the shortest
    lock_order_suppressed: int = 0  # left out, for a suppression file says that they cannot be
    #: Left out too, for it is not known whether their locks are the same ones throughout.
    lock_order_unproven: int = 0
    stacks: Mapping[int, tuple[Frame, ...]] = field(default_factory=dict)
    sites: Mapping[int, Frame] = field(default_factory=dict)
    events: tuple[Event, ...] = ()  # the newest, newest first, at most a few hundred
    marks: tuple[Mark, ...] = ()  # the newest, newest first, at most a hundred
    misuses: tuple[Misuse, ...] = ()  # the first one first
    patterns: tuple[Pattern, ...] = ()  # in the order of PatternName
    lost_events: int = 0  # since the process started, as far as known
    unseen_waiters: tuple[int, ...] = ()  # tids that wait in a futex unknown to the source
    unseen: tuple[UnseenWait, ...] = ()  # of these what else is known: the first ones only
    locks_left_out: int = 0  # uncontended locks known but not in ``locks``
    ended: bool = False  # the process is gone; the figures are its last, its threads dead
    level: str = "contended"  # one of launch.LEVELS, "sampled"
    #: False: watching began later than the program; holds and waits from before are not known.
    complete: bool = True
    notes: tuple[str, ...] = ()  # one line each, what the user should know
    why: Mapping[int, str] = field(default_factory=dict)  # by tid: the rule that told its wait

    @property
    def is_sampled(self) -> bool:
        """Whether it was taken from outside: then how often locks were taken and how long they were
        held is not known, and waits are estimates."""
        return self.source == "proc"

    @property
    def deadlocked(self) -> frozenset[int]:
        """The ids of the locks in a deadlock."""
        return frozenset(edge.waits_for for found in self.deadlocks for edge in found.cycle)
