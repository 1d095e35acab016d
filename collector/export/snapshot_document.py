"""The document of a snapshot: each object, key, type and meaning, described once.

The codec (snapshot_codec.py), the JSON Schema and docs/snapshot.md come from these types. A field
has the name of its model field; ``rename`` gives the key where the two differ. Keys may be added;
the keys that exist keep their meaning. The value null means "not measured".
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from locktop.collector.model import (
    CONTENTION_KINDS,
    ActivityState,
    BlockReason,
    Confidence,
    Kind,
    MisuseKind,
    PatternName,
    ThreadState,
)

FORMAT = "locktop.snapshot"
VERSION = 1
#: Frames of one stack, far more than are ever recorded.
MAX_FRAMES = 4096


class Address(int):
    """An address of 64 bits, which the document has as a hexadecimal text."""


class StackKey(int):
    """The number of a stack as a key, which the document has as a decimal text."""


def said(meaning: str, **schema: Any) -> Meta:
    """Return the description of a key in plain English."""
    return Meta(description=meaning, extra_json_schema=schema or None)


Count = Annotated[int, Meta(ge=0)]
#: Seconds, or a share of an interval, or a rate.
Number = float
Tid = Annotated[int, Meta(ge=0)]
LockId = Annotated[int, Meta(ge=0)]
StackId = Annotated[int, Meta(ge=0)]
#: A factory, for the JSON Schema cannot write a default of a type of our own.
_NO_ADDRESS: Any = field(default_factory=Address)
_STACK = said('The number of a stack in "stacks"; 0: not known.')
_SITE = said('The return address of the call; "sites" may have its frame.')
_LOWER_BOUND = said("The time is a lower bound: the wait began before locktop first observed it.")
_IDLE_LOCK = said("All known waits were idle waits.")
_SHARE_OF_INTERVAL = {"minimum": 0, "maximum": 1}


class ProcessEntry(Struct, kw_only=True, gc=False):
    """The process."""

    pid: Annotated[Tid, said("The process id.")]
    comm: Annotated[str, said("The name of the process.")] = ""
    cmdline: Annotated[list[str], said("The command with its arguments.")] = []
    exe: Annotated[str, said("The path of the program.")] = ""
    started_at: Annotated[str, said("The start of the process, ISO 8601 in UTC.")] = ""
    cpu_share: Annotated[Number, said("CPUs used in the last interval.")] = 0.0
    rss_bytes: Annotated[Count, said("Resident memory in bytes.")] = 0
    cpus: Annotated[Count, said("CPUs that the process may use; 0: not known.")] = 0


class WaitEntry(
    Struct, kw_only=True, gc=False, rename={"duration_s": "since_s", "is_lower_bound": "at_least"}
):
    """The wait that a thread is in."""

    lock: Annotated[LockId, said("The id of the lock.")]
    kind: Annotated[Kind, said("The kind of the lock.")]
    duration_s: Annotated[Number, said("Seconds since the wait began.")] = 0.0
    is_lower_bound: Annotated[bool, _LOWER_BOUND] = False
    holders: Annotated[list[Tid], said("The tids of the known holders.")] = []
    stack: Annotated[StackId, _STACK] = 0
    site: Annotated[Address, _SITE] = _NO_ADDRESS
    timed: Annotated[bool, said("The wait has a timeout.")] = False
    shared: Annotated[bool, said("The thread wants an rwlock to read.")] = False
    idle: Annotated[bool | UnsetType, said("The thread waits for work: no contention.")] = UNSET
    why: Annotated[str, said("The idle rule that decided; empty: none did.")] = ""

    #: The number of a wait is not saved.
    seq = property(lambda self: 0)

    def __post_init__(self) -> None:
        if self.idle is UNSET:
            self.idle = self.kind not in CONTENTION_KINDS


class HeldEntry(Struct, kw_only=True, gc=False, rename={"duration_s": "since_s"}):
    """A lock that a thread holds."""

    lock: Annotated[LockId, said("The id of the lock.")]
    site: Annotated[Address, _SITE] = _NO_ADDRESS
    duration_s: Annotated[Number | None, said("Seconds since the thread took the lock.")] = None
    depth: Annotated[Count, said("Recursive acquisitions beyond the first.")] = 0
    shared: Annotated[bool, said("The thread holds an rwlock to read.")] = False


class TimeEntry(Struct, kw_only=True, gc=False):
    """Where the wall clock of a thread went in the last interval: shares that add up to 1."""

    cpu: Annotated[Number, said("On a CPU.", **_SHARE_OF_INTERVAL)] = 0.0
    runnable: Annotated[Number, said("Ready, without a CPU.", **_SHARE_OF_INTERVAL)] = 0.0
    contended: Annotated[Number, said("Asleep for a lock.", **_SHARE_OF_INTERVAL)] = 0.0
    idle: Annotated[Number, said("Asleep for work.", **_SHARE_OF_INTERVAL)] = 0.0
    disk: Annotated[Number, said("Asleep for a block device.", **_SHARE_OF_INTERVAL)] = 0.0
    other: Annotated[
        Number, said("Everything else, and what is not known.", **_SHARE_OF_INTERVAL)
    ] = 0.0
    unknown: Annotated[
        list[str], said('The shares that are not fully known; "other" has the rest.')
    ] = []

    def __post_init__(self) -> None:
        shares = self.__struct_fields__[:-1]
        for name in shares:
            # A sum of floats may miss the bounds by a rounding error.
            if not -1e-6 <= getattr(self, name) <= 1 + 1e-6:
                raise ValueError(f"Expected a share from 0 to 1 in {name}")
        self.unknown = [name for name in self.unknown if name in shares]


class SwitchesEntry(Struct, kw_only=True, gc=False):
    """How often a thread lost its CPU since the thread began."""

    voluntary: Annotated[Count, said("The thread went to sleep.")]
    involuntary: Annotated[Count, said("The kernel ran another thread instead.")]
    migrations: Annotated[Count | None, said("The thread moved to another CPU.")] = None


class CounterEntry(Struct, kw_only=True, gc=False):
    """One event that the processor or the kernel counts for a thread."""

    name: Annotated[str, said("The name of the event, as in perf-list(1).")]
    unit: Annotated[str, said('"s" for times, empty for counts.')] = ""
    total: Annotated[Number | None, said("The figure since counting began.")] = None
    per_s: Annotated[Number, said("The rate in the last interval.")] = 0.0
    why: Annotated[str, said("The reason for a missing figure, or what the figure leaves out.")] = (
        ""
    )


class CountersEntry(Struct, kw_only=True, gc=False, rename={"duration_s": "for_s"}):
    """The event counters of the followed thread."""

    duration_s: Annotated[Number, said("Seconds since counting began.")] = 0.0
    counters: Annotated[list[CounterEntry], said("One entry for each event.")] = []


class ActivityEntry(
    Struct, kw_only=True, gc=False, rename={"duration_s": "for_s", "is_lower_bound": "at_least"}
):
    """What a thread does now, as the kernel reports it."""

    tid: Annotated[Tid, said("The thread.")]
    doing: Annotated[ActivityState, said("The state of the thread.")] = ActivityState.UNKNOWN
    call: Annotated[str, said("The name of the system call; empty: none, or not known.")] = ""
    what: Annotated[str, said("The system call with its known arguments.")] = ""
    duration_s: Annotated[Number, said("Seconds in the system call.")] = 0.0
    stack: Annotated[StackId, _STACK] = 0
    stack_age_s: Annotated[
        Number, said("Seconds since locktop took the stack; 0: the stack is current.")
    ] = 0.0
    cpu: Annotated[Number | None, said("The share of the last interval on a CPU.")] = None
    is_lower_bound: Annotated[bool, _LOWER_BOUND] = False


class ThreadInterval(Struct, kw_only=True, gc=False):
    """The part of a thread's figures from between the two scans of -d."""

    wait_s: Annotated[dict[Kind, Number], said("Seconds waited, by kind of lock.")]
    cpu_s: Annotated[Number, said("Seconds on a CPU.")]
    acquisitions: Annotated[int | None, said("Locks taken.")]
    contended: Annotated[int | None, said("Locks taken after a wait.")]


class ThreadEntry(Struct, kw_only=True, gc=False, rename={"holds": "held", "held_locks": "holds"}):
    """A thread. The figures cover its life; shares cover the last interval."""

    tid: Annotated[Tid, said("The thread id.")]
    name: Annotated[str, said("The name of the thread.")] = ""
    alive: Annotated[bool, said("The thread has not ended.")] = True
    state: Annotated[ThreadState, said("What the thread does now.")]
    waiting_for: Annotated[WaitEntry | None, said("The wait that the thread is in.")] = None
    holds: Annotated[list[HeldEntry], said("The held locks in detail.")] = []
    #: Behind ``holds``: msgspec reads a model by the names of fields or by keys, as the first field
    #: that has two names tells.
    held_locks: Annotated[list[LockId], said("The ids of the held locks.")] = []
    wait_s: Annotated[
        dict[Kind, Number],
        said("Seconds waited by kind of lock; the present wait included."),
    ] = {}
    cpu_s: Annotated[Number, said("Seconds on a CPU.")] = 0.0
    acquisitions: Annotated[Count | None, said("Locks taken.")] = 0
    contended: Annotated[Count | None, said("Locks taken after a wait.")] = 0
    wait_share: Annotated[Number, said("The share of the last interval in contention.")] = 0.0
    idle_share: Annotated[Number, said("The share of the last interval in idle waits.")] = 0.0
    cpu_share: Annotated[Number, said("The share of the last interval on a CPU.")] = 0.0
    time: Annotated[
        TimeEntry | None, said("Where the time of the last interval went; null at the first scan.")
    ] = None
    switches: Annotated[SwitchesEntry | None, said("Context switches.")] = None
    counters: Annotated[CountersEntry | None, said("Event counters.")] = None
    now: Annotated[ActivityEntry | None, said("The activity of a thread without a known wait.")] = (
        None
    )
    interval: Annotated[ThreadInterval | UnsetType, said("Only with -d.")] = UNSET


class ThreadGroupEntry(Struct, kw_only=True, gc=False):
    """Threads that do the same. Each thread is in one group."""

    threads: Annotated[list[Tid], said("The tids, the longest wait first.")]
    name: Annotated[str, said("The common name; # stands for numbers that differ.")]
    alive: Annotated[bool, said("The threads have not ended.")]
    state: Annotated[ThreadState, said("What the threads do now.")]
    kind: Annotated[Kind | None, said("The kind of lock that the threads wait for.")]
    lock: Annotated[LockId | None, said("The lock; null: none, or several of one class.")]
    lock_name: Annotated[str, said("The name of the lock or of its class.")]
    stack: Annotated[StackId, _STACK]
    idle: Annotated[bool, said("The threads wait for work.")]
    longest_s: Annotated[Number | None, said("Seconds of the longest wait.")]
    holders: Annotated[list[Tid], said("The holders of the locks that the threads wait for.")]
    holds: Annotated[list[LockId], said("The locks that each of the threads holds.")]


class StackInterval(Struct, kw_only=True, gc=False):
    """The part of a wait stack's figures from between the two scans of -d."""

    count: Annotated[int, said("Waits that ended.")]
    wait_s: Annotated[Number, said("Seconds waited.")]


class WaitStackEntry(Struct, kw_only=True, gc=False):
    """The waits for one lock from one stack."""

    stack: Annotated[StackId, said('The number of the stack in "stacks".')]
    count: Annotated[Count, said("Waits that ended.")]
    wait_s: Annotated[Number, said("Seconds waited.")]
    idle: Annotated[bool, said("The waits were idle waits.")] = False
    interval: Annotated[StackInterval | UnsetType, said("Only with -d.")] = UNSET


class BlameInterval(Struct, kw_only=True, gc=False):
    """The part of the blame from between the two scans of -d."""

    wait_s: Annotated[Number, said("Seconds waited because of the holder.")]


class BlameEntry(Struct, kw_only=True, gc=False):
    """Wait time charged to a holder of the lock."""

    tid: Annotated[Tid, said("The holder; 0: a thread that ended, or no known holder.")]
    site: Annotated[Address, said("Where the holder took the lock.")] = _NO_ADDRESS
    through: Annotated[LockId, said("The lock that the holder waited for meanwhile; 0: none.")] = 0
    wait_s: Annotated[Number, said("Seconds waited because of the holder.")]
    interval: Annotated[BlameInterval | UnsetType, said("Only with -d.")] = UNSET


class BlameRootEntry(Struct, kw_only=True, gc=False):
    """Wait time charged to the end of a chain: a holder that waited for no lock."""

    tid: Annotated[Tid, said("The holder; 0 as in blame.")]
    lock: Annotated[LockId, said("The lock that the holder held.")]
    site: Annotated[Address, said("Where the holder took that lock.")]
    wait_s: Annotated[Number, said("Seconds waited because of the holder.")]


class LockInterval(Struct, kw_only=True, gc=False):
    """The part of a lock's or a class's figures from between the two scans of -d."""

    acquisitions: Annotated[int | None, said("Acquisitions.")]
    contended: Annotated[int, said("Acquisitions after a wait.")]
    trylock_failed: Annotated[int | None, said("Failed trylocks.")]
    signals: Annotated[int | None, said("Signals, broadcasts or posts.")]
    hold_timed: Annotated[int, said("Holds that were timed.")]
    wait_s: Annotated[Number, said("Seconds waited.")]
    hold_s: Annotated[Number | None, said("Seconds held.")]
    idle_s: Annotated[Number, said("Seconds of idle waits.")]


class LockEntry(
    Struct, kw_only=True, gc=False, rename={"class_name": "class", "holder_activity": "holder_now"}
):
    """A lock. The figures cover the time since the process started."""

    id: Annotated[LockId, said("The id of the lock in this document.")]
    address: Annotated[Address, said("The address of the lock.")] = _NO_ADDRESS
    kind: Annotated[Kind, said("The kind of the lock.")]
    type: Annotated[
        str, said("A futex: the type that the functions of its waiters tell, as Rust Mutex.")
    ] = ""
    name: Annotated[str, said("The name: given, else of the variable, else of the source.")]
    acquisitions: Annotated[Count | None, said("How often threads took the lock.")] = 0
    contended: Annotated[Count, said("How often threads took the lock after a wait.")] = 0
    trylock_failed: Annotated[Count | None, said("How often a trylock failed.")] = 0
    signals: Annotated[Count | None, said("Signals, broadcasts or posts by this process.")] = 0
    unheard: Annotated[Count | None, said("Of the signals, those without a waiter.")] = 0
    wait_s: Annotated[Number, said("Seconds waited; present waits included.")]
    wait_error_s: Annotated[
        Number, said("Sampled: one standard deviation of wait_s in seconds.")
    ] = 0.0
    wait_max_s: Annotated[Number, said("Seconds of the longest wait.")] = 0.0
    idle: Annotated[bool | UnsetType, _IDLE_LOCK] = UNSET
    idle_s: Annotated[Number, said("Of wait_s, the seconds of idle waits.")] = 0.0
    hold_s: Annotated[
        Number | None, said("Seconds held: exact if all holds were timed, else scaled up.")
    ] = 0.0
    hold_timed: Annotated[Count, said("How many holds were timed.")] = 0
    hold_max_s: Annotated[Number | None, said("Seconds of the longest timed hold.")] = 0.0
    holders: Annotated[list[Tid], said("The tids of the present holders.")] = []
    waiters: Annotated[list[Tid], said("The tids of the present waiters, longest first.")] = []
    wait_stacks: Annotated[
        list[WaitStackEntry], said("Where the waits came from, most wait first.")
    ] = []
    blame: Annotated[list[BlameEntry], said("Because of which holders threads waited.")] = []
    blame_roots: Annotated[
        list[BlameRootEntry] | UnsetType,
        said("The ends of the chains; only if a holder waited for a lock itself."),
    ] = UNSET
    destroyed: Annotated[bool, said("The program destroyed the lock.")] = False
    recursive: Annotated[bool, said("The holder may take the lock again.")] = False
    writers_first: Annotated[bool, said("An rwlock: readers queue behind a writer that waits.")] = (
        False
    )
    holder_activity: Annotated[
        ActivityEntry | None, said("What the holder of a lock with waiters does now.")
    ] = None
    #: Behind ``holder_activity``, as above.
    class_name: Annotated[str | UnsetType, said("The name of the lock class, if any.")] = UNSET
    foreign_releases: Annotated[
        bool, said("Threads that did not hold the lock released it: holders may be wrong.")
    ] = False
    used_as_lock: Annotated[
        bool, said("A semaphore: only threads that took it have posted it.")
    ] = False
    interval: Annotated[LockInterval | UnsetType, said("Only with -d.")] = UNSET

    def __post_init__(self) -> None:
        if self.idle is UNSET:
            self.idle = self.kind not in CONTENTION_KINDS


class LockClassEntry(Struct, kw_only=True, gc=False):
    """At least two locks of one name and kind. The figures are sums over the locks."""

    name: Annotated[str, said("The common name; indexes are empty.")]
    kind: Annotated[Kind, said("The kind of the locks.")]
    instances: Annotated[Count, said("How many locks the class has.")]
    destroyed: Annotated[Count, said("How many of the locks the program destroyed.")]
    locks: Annotated[list[LockId], said("The ids of the locks with most wait, at most 64.")]
    acquisitions: Annotated[Count | None, said("How often threads took the locks.")]
    contended: Annotated[Count, said("How often threads took the locks after a wait.")]
    trylock_failed: Annotated[Count | None, said("How often a trylock failed.")]
    signals: Annotated[Count | None, said("Signals, broadcasts or posts by this process.")]
    unheard: Annotated[Count | None, said("Of the signals, those without a waiter.")]
    wait_s: Annotated[Number, said("Seconds waited.")]
    wait_max_s: Annotated[Number, said("Seconds of the longest wait.")]
    idle: Annotated[bool, _IDLE_LOCK]
    idle_s: Annotated[Number, said("Of wait_s, the seconds of idle waits.")]
    hold_s: Annotated[Number | None, said("Seconds held.")]
    hold_timed: Annotated[Count, said("How many holds were timed.")]
    hold_max_s: Annotated[Number | None, said("Seconds of the longest timed hold.")]
    holders: Annotated[list[Tid], said("The tids of the present holders.")]
    waiters: Annotated[list[Tid], said("The tids of the present waiters.")]
    interval: Annotated[LockInterval | UnsetType, said("Only with -d.")] = UNSET


class DeadlockEdgeEntry(Struct, kw_only=True, gc=False, rename={"reason": "how"}):
    """One thread of a cycle."""

    tid: Annotated[Tid, said("The thread that waits.")]
    waits_for: Annotated[LockId, said("The id of the lock.")]
    held_by: Annotated[Tid, said("The thread that blocks; 0: no thread is left.")] = 0
    stack: Annotated[StackId, _STACK] = 0
    site: Annotated[Address, said("Where the blocking thread took the lock.")] = _NO_ADDRESS
    behind: Annotated[bool, said("The blocking thread is a writer that waits.")] = False
    reason: Annotated[BlockReason, said("Why that thread blocks.")] = BlockReason.HELD
    pid: Annotated[Tid, said("The process of the thread; 0: the observed process.")] = 0

    def __post_init__(self) -> None:
        # Old snapshots have only "behind".
        if self.behind:
            self.reason = BlockReason.BEHIND


class DeadlockEntry(Struct, kw_only=True, gc=False, rename={"is_lower_bound": "at_least"}):
    """A cycle of threads that wait for each other."""

    certain: Annotated[bool, said("The deadlock is certain.")] = False
    doubt: Annotated[str, said("Why the deadlock is only possible.")] = ""
    since_s: Annotated[Number, said("Seconds since the cycle closed.")] = 0.0
    is_lower_bound: Annotated[bool, _LOWER_BOUND] = False
    cycle: Annotated[list[DeadlockEdgeEntry], said("The threads of the cycle in order.")] = []
    stuck: Annotated[list[Tid], said("The tids that wait behind the cycle.")] = []


class OrderEdgeEntry(Struct, kw_only=True, gc=False, rename={"from_": "from", "site": "from_site"}):
    """A thread took, or wanted, one lock while it held another."""

    from_: Annotated[LockId, said("The held lock.")]
    to: Annotated[LockId, said("The lock that the thread took or wanted.")]
    tid: Annotated[Tid, said("The thread; it may have ended.")] = 0
    stack: Annotated[StackId, said('Where the thread took "to".')] = 0
    site: Annotated[Address, said('Where the thread had taken "from".')] = _NO_ADDRESS
    shared: Annotated[bool, said('The thread wanted "to" to read.')] = False
    from_shared: Annotated[bool, said('The thread held "from" to read.')] = False


class OrderCycleEntry(Struct, kw_only=True, gc=False):
    """A potential deadlock: locks that threads took in different orders."""

    locks: Annotated[list[LockId], said("The ids of the locks.")] = []
    edges: Annotated[list[OrderEdgeEntry], said("One edge for each thread.")] = []
    confidence: Annotated[Confidence, said("How sure it is that the deadlock can happen.")] = (
        Confidence.HIGH
    )
    why: Annotated[str, said("What is not known, if the confidence is not high.")] = ""
    classes: Annotated[
        list[str], said("The names of lock classes, for a cycle of classes only.")
    ] = []


class FrameEntry(Struct, kw_only=True, gc=False):
    """A frame of a stack."""

    function: Annotated[str, said("The name of the function; empty: not known.")] = ""
    file: Annotated[str | None, said("The source file.")] = None
    line: Annotated[Count | None, said("The line in the source file.")] = None
    module: Annotated[str, said("The program or library.")] = ""
    address: Annotated[Address, said("The address of the code.")] = _NO_ADDRESS
    offset: Annotated[Address, said("The offset in the module.")] = _NO_ADDRESS
    inlined: Annotated[bool, said("The compiler inlined the function.")] = False


class EventEntry(Struct, kw_only=True, gc=False):
    """A contended acquisition, or a wait, that ended."""

    tid: Annotated[Tid, said("The thread that waited.")]
    lock: Annotated[LockId, said("The id of the lock.")]
    kind: Annotated[Kind, said("The kind of the lock.")]
    ago_s: Annotated[Number, said("Seconds since the wait began.")] = 0.0
    wait_s: Annotated[Number, said("Seconds waited.")] = 0.0
    hold_s: Annotated[Number | None, said("Seconds held.")] = None
    stack: Annotated[StackId, _STACK] = 0
    holder: Annotated[Tid, said("The holder when the wait began; 0: not known.")] = 0
    site: Annotated[Address, _SITE] = _NO_ADDRESS
    timed_out: Annotated[bool, said("The wait ended by its timeout.")] = False


class MarkEntry(Struct, kw_only=True, gc=False):
    """An annotation that the program made (locktop_mark)."""

    tid: Annotated[Tid, said("The thread that made the annotation.")]
    ago_s: Annotated[Number, said("Seconds since the annotation.")] = 0.0
    text: Annotated[str, said("The text of the annotation.")] = ""


class MisuseEntry(Struct, kw_only=True, gc=False):
    """A use of a lock that pthreads does not allow."""

    kind: Annotated[MisuseKind, said("What the program did.")]
    lock: Annotated[LockId, said("The id of the lock.")]
    tid: Annotated[Tid, said("The first thread that did so.")] = 0
    other: Annotated[
        Count, said("The thread that held the lock, 0: not known; two_mutexes: a lock id.")
    ] = 0
    stack: Annotated[StackId, _STACK] = 0
    count: Annotated[Count, said("How often the program did so.")] = 0
    ago_s: Annotated[Number, said("Seconds since the first time.")] = 0.0


class PatternEntry(Struct, kw_only=True, gc=False):
    """A contention pattern (docs/patterns.md)."""

    name: Annotated[PatternName, said("The name of the pattern.")]
    lock: Annotated[LockId | None, said("The id of the lock; null: no single lock.")] = 0
    tids: Annotated[list[Tid], said("The threads that show the pattern.")] = []
    evidence: Annotated[str, said("The figures that show the pattern.")] = ""
    advice: Annotated[str, said("What to change.")] = ""


class UnobservedWaitEntry(Struct, kw_only=True, gc=False, rename={"duration_s": "since_s"}):
    """A wait in a futex call that the kernel shows and the library does not observe."""

    tid: Annotated[Tid, said("The thread that waits.")]
    address: Annotated[Address, said("The address of the futex; 0x0: not known.")] = _NO_ADDRESS
    name: Annotated[str, said("The name of the variable.")] = ""
    duration_s: Annotated[Number | None, said("Seconds of the wait, a lower bound.")] = None
    stack: Annotated[StackId, _STACK] = 0
    type: Annotated[str, said("The type that the functions of the waiter tell.")] = ""
    idle: Annotated[bool | None, said("An idle wait; null: no rule decides.")] = None
    why: Annotated[str, said("The idle rule that decided.")] = ""


class Document(
    Struct,
    kw_only=True,
    gc=False,
    rename={"unobserved_waiters": "unseen_waiters", "unobserved_waits": "unseen"},
):
    """Everything that one scan of a process showed."""

    format: Annotated[Literal["locktop.snapshot"], said("The name of the format.")]
    version: Annotated[Literal[1], said("The version of the format.")]
    taken_at: Annotated[str, said("The time of the scan, ISO 8601 in UTC.")] = ""
    host: Annotated[str, said("The name of the machine.")] = ""
    source: Annotated[str, said("preload: counted by the library; proc: sampled from outside.")] = (
        ""
    )
    duration_s: Annotated[Number, said("Seconds that the figures cover; with -d the interval.")]
    lost_events: Annotated[Count, said("Records that newer records overwrote.")] = 0
    ended: Annotated[bool, said("The process has ended; the figures are its last.")] = False
    level: Annotated[
        str, said("The recording level: dormant, counting, contended, blocks, all, or sampled.")
    ] = "contended"
    complete: Annotated[
        bool, said("Recording began with the program: no earlier hold or wait is missing.")
    ] = True
    locks_left_out: Annotated[Count, said("Known locks without contention not in locks.")] = 0
    unobserved_waiters: Annotated[
        list[Tid], said("Threads in a futex call that the source does not know.")
    ] = []
    unobserved_waits: Annotated[
        list[UnobservedWaitEntry], said("Details of the first 32 of these threads.")
    ] = []
    notes: Annotated[list[str], said("What the user should know, one line each.")] = []
    process: Annotated[ProcessEntry, said("The process.")]
    threads: Annotated[list[ThreadEntry], said("The threads in order of tid.")]
    thread_groups: Annotated[list[ThreadGroupEntry], said("Threads that do the same.")] = []
    locks: Annotated[list[LockEntry], said("The locks, most wait first.")]
    lock_classes: Annotated[list[LockClassEntry], said("Locks of one name.")] = []
    deadlocks: Annotated[list[DeadlockEntry], said("Deadlocks, certain or possible.")] = []
    lock_order: Annotated[list[OrderCycleEntry], said("Potential deadlocks, surest first.")] = []
    lock_order_suppressed: Annotated[Count, said("Left out by a suppression file.")] = 0
    lock_order_unproven: Annotated[
        Count, said("Left out: the memory of their locks may have had other locks.")
    ] = 0
    stacks: Annotated[
        dict[StackKey, Annotated[list[FrameEntry], Meta(max_length=MAX_FRAMES)]],
        said("Stacks by number: frames, innermost first."),
    ] = {}
    sites: Annotated[
        dict[Address, FrameEntry], said("By return address: the innermost frame of the program.")
    ] = {}
    events: Annotated[list[EventEntry], said("The newest events, newest first.")] = []
    marks: Annotated[list[MarkEntry], said("The newest annotations, newest first.")] = []
    misuses: Annotated[list[MisuseEntry], said("Misuses, the first one first.")] = []
    patterns: Annotated[list[PatternEntry], said("Contention patterns.")] = []

    #: Shares were saved with the figures, rates were not.
    interval_s = property(lambda self: self.duration_s)
