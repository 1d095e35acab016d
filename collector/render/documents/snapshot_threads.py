"""Threads in the document of a snapshot (snapshot_document.py)."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Struct, UnsetType

from locktop.collector.model import CONTENTION_KINDS, ActivityState, ChildEvent, Kind, ThreadState
from locktop.collector.render.documents.snapshot_fields import (
    LOWER_BOUND,
    NO_ADDRESS,
    SHARE_OF_INTERVAL,
    SITE,
    STACK,
    WAIT_P50,
    WAIT_P99,
    Address,
    Count,
    LockId,
    Number,
    StackId,
    Tid,
    meaning,
)
from locktop.collector.render.documents.snapshot_histograms import HistogramEntry


class WaitEntry(
    Struct, kw_only=True, gc=False, rename={"duration_s": "since_s", "is_lower_bound": "at_least"}
):
    """The wait that a thread is in."""

    lock: Annotated[LockId, meaning("The id of the lock.")]
    kind: Annotated[Kind, meaning("The kind of the lock.")]
    duration_s: Annotated[Number, meaning("Seconds since the wait began.")] = 0.0
    is_lower_bound: Annotated[bool, LOWER_BOUND] = False
    holders: Annotated[list[Tid], meaning("The tids of the known holders.")] = []
    stack: Annotated[StackId, STACK] = 0
    site: Annotated[Address, SITE] = NO_ADDRESS
    timed: Annotated[bool, meaning("The wait has a timeout.")] = False
    shared: Annotated[bool, meaning("The thread wants an rwlock to read.")] = False
    idle: Annotated[bool | UnsetType, meaning("The thread waits for work: no contention.")] = UNSET
    why: Annotated[str, meaning("The idle rule that decided; empty: none did.")] = ""

    #: The number of a wait is not saved.
    seq = property(lambda self: 0)

    def __post_init__(self) -> None:
        if self.idle is UNSET:
            self.idle = self.kind not in CONTENTION_KINDS


class HeldEntry(
    Struct, kw_only=True, gc=False, rename={"duration_s": "since_s", "is_lower_bound": "at_least"}
):
    """A lock that a thread holds."""

    lock: Annotated[LockId, meaning("The id of the lock.")]
    site: Annotated[Address, SITE] = NO_ADDRESS
    duration_s: Annotated[Number | None, meaning("Seconds since the thread took the lock.")] = None
    depth: Annotated[Count, meaning("Recursive acquisitions beyond the first.")] = 0
    shared: Annotated[bool, meaning("The thread holds an rwlock to read.")] = False
    is_lower_bound: Annotated[
        bool, meaning("The time is a lower bound: nobody measured when the hold began.")
    ] = False


class TimeEntry(Struct, kw_only=True, gc=False):
    """Where the wall clock of a thread went in the last interval: shares that add up to 1."""

    cpu: Annotated[Number, meaning("On a CPU.", **SHARE_OF_INTERVAL)] = 0.0
    runnable: Annotated[Number, meaning("Ready, without a CPU.", **SHARE_OF_INTERVAL)] = 0.0
    contended: Annotated[Number, meaning("Asleep for a lock.", **SHARE_OF_INTERVAL)] = 0.0
    idle: Annotated[Number, meaning("Asleep for work.", **SHARE_OF_INTERVAL)] = 0.0
    disk: Annotated[Number, meaning("Asleep for a block device.", **SHARE_OF_INTERVAL)] = 0.0
    other: Annotated[
        Number, meaning("Everything else, and what is not known.", **SHARE_OF_INTERVAL)
    ] = 0.0
    unknown: Annotated[
        list[str], meaning('The shares that are not fully known; "other" has the rest.')
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

    voluntary: Annotated[Count, meaning("The thread went to sleep.")]
    involuntary: Annotated[Count, meaning("The kernel ran another thread instead.")]
    migrations: Annotated[Count | None, meaning("The thread moved to another CPU.")] = None


class CounterEntry(Struct, kw_only=True, gc=False):
    """One event that the processor or the kernel counts for a thread."""

    name: Annotated[str, meaning("The name of the event, as in perf-list(1).")]
    unit: Annotated[str, meaning('"s" for times, empty for counts.')] = ""
    total: Annotated[Number | None, meaning("The figure since counting began.")] = None
    per_s: Annotated[Number, meaning("The rate in the last interval.")] = 0.0
    why: Annotated[str, meaning("Why a figure is missing, or what it leaves out.")] = ""


class CountersEntry(Struct, kw_only=True, gc=False, rename={"duration_s": "for_s"}):
    """The event counters of the followed thread."""

    duration_s: Annotated[Number, meaning("Seconds since counting began.")] = 0.0
    counters: Annotated[list[CounterEntry], meaning("One entry for each event.")] = []


class ActivityEntry(
    Struct, kw_only=True, gc=False, rename={"duration_s": "for_s", "is_lower_bound": "at_least"}
):
    """The activity of a thread, as the kernel reports it."""

    tid: Annotated[Tid, meaning("The thread.")]
    doing: Annotated[ActivityState, meaning("The state of the thread.")] = ActivityState.UNKNOWN
    call: Annotated[str, meaning("The name of the system call; empty: none, or not known.")] = ""
    what: Annotated[str, meaning("The system call with its known arguments.")] = ""
    duration_s: Annotated[Number, meaning("Seconds in the system call.")] = 0.0
    stack: Annotated[StackId, STACK] = 0
    stack_age_s: Annotated[
        Number, meaning("Seconds since locktop took the stack; 0: the stack is current.")
    ] = 0.0
    cpu: Annotated[Number | None, meaning("The share of the last interval on a CPU.")] = None
    is_lower_bound: Annotated[bool, LOWER_BOUND] = False


class ThreadInterval(Struct, kw_only=True, gc=False):
    """The part of a thread's figures from between the two scans of -d."""

    wait_s: Annotated[dict[Kind, Number], meaning("Seconds waited, by kind of lock.")]
    cpu_s: Annotated[Number, meaning("Seconds on a CPU.")]
    acquisitions: Annotated[int | None, meaning("Locks taken.")]
    contended: Annotated[int | None, meaning("Locks taken after a wait.")]
    wait_p50_s: Annotated[Number | None, WAIT_P50] = None
    wait_p99_s: Annotated[Number | None, WAIT_P99] = None


class ThreadEntry(Struct, kw_only=True, gc=False, rename={"holds": "held", "held_locks": "holds"}):
    """A thread. The figures cover its life; shares cover the last interval."""

    tid: Annotated[Tid, meaning("The thread id.")]
    name: Annotated[str, meaning("The name of the thread.")] = ""
    alive: Annotated[bool, meaning("The thread has not ended.")] = True
    state: Annotated[ThreadState, meaning("What the thread does now.")]
    waiting_for: Annotated[WaitEntry | None, meaning("The wait that the thread is in.")] = None
    holds: Annotated[list[HeldEntry], meaning("The held locks in detail.")] = []
    #: This field stands behind ``holds``. msgspec takes the first field that has two names to tell
    #: whether a model has names or keys.
    held_locks: Annotated[list[LockId], meaning("The ids of the held locks.")] = []
    wait_s: Annotated[
        dict[Kind, Number],
        meaning("Seconds waited by kind of lock; the present wait included."),
    ] = {}
    cpu_s: Annotated[Number, meaning("Seconds on a CPU.")] = 0.0
    acquisitions: Annotated[Count | None, meaning("Locks taken.")] = None
    contended: Annotated[Count | None, meaning("Locks taken after a wait.")] = None
    wait_p50_s: Annotated[Number | None, WAIT_P50] = None
    wait_p99_s: Annotated[Number | None, WAIT_P99] = None
    wait_histogram: Annotated[
        HistogramEntry | None, meaning("The waits in contended by length.")
    ] = None
    wait_share: Annotated[Number, meaning("The share of the last interval in contention.")] = 0.0
    idle_share: Annotated[Number, meaning("The share of the last interval in idle waits.")] = 0.0
    cpu_share: Annotated[Number, meaning("The share of the last interval on a CPU.")] = 0.0
    time: Annotated[
        TimeEntry | None,
        meaning("Where time went; null at the first scan."),
    ] = None
    switches: Annotated[SwitchesEntry | None, meaning("Context switches.")] = None
    counters: Annotated[CountersEntry | None, meaning("Event counters.")] = None
    now: Annotated[ActivityEntry | None, meaning("What a thread without a known wait does.")] = None
    interval: Annotated[ThreadInterval | UnsetType, meaning("Only with -d.")] = UNSET


class ThreadElsewhereEntry(Struct, kw_only=True, gc=False):
    """A thread of another process that holds a lock of this process, in shared memory."""

    tid: Annotated[Tid, meaning("The thread id, as among the holders of the lock.")]
    pid: Annotated[Count, meaning("Its process; 0: not known.")] = 0
    comm: Annotated[
        str, meaning("The name of that process; empty: its memory map cannot be read.")
    ] = ""
    name: Annotated[str, meaning("The name of the thread; empty: the first thread.")] = ""
    is_freed_at_exit: Annotated[
        bool, meaning("The kernel frees the lock at the end of the thread.")
    ] = False
    waits: Annotated[
        bool, meaning("The thread waits too, in a futex call without a time limit.")
    ] = False


class ChildWaitsEntry(Struct, kw_only=True, gc=False):
    """A child of the process whose threads wait for locks."""

    pid: Annotated[Count, meaning("The child, or a child of one.")]
    comm: Annotated[str, meaning("Its name.")]
    waiting: Annotated[Count, meaning("How many of its threads wait for locks.")]
    longest_s: Annotated[Number, meaning("Seconds of the longest of these waits, at least.")]


class AwaitedChildEntry(Struct, kw_only=True, gc=False):
    """A child for which a thread of the process waits without a time limit."""

    waiter: Annotated[str, meaning("The name of the thread.")]
    pid: Annotated[Count, meaning("The child.")]
    comm: Annotated[str, meaning("Its name.")]
    others: Annotated[Count, meaning("How many other children could end the wait as well.")]
    event: Annotated[ChildEvent, meaning("What the thread waits for.")]


class ThreadGroupEntry(Struct, kw_only=True, gc=False):
    """Threads with the same state, lock, stack and held locks. Each thread is in one group."""

    threads: Annotated[list[Tid], meaning("The tids, the longest wait first.")]
    name: Annotated[str, meaning("The common name; # stands for numbers that differ.")]
    alive: Annotated[bool, meaning("The threads have not ended.")]
    state: Annotated[ThreadState, meaning("What the threads do now.")]
    kind: Annotated[Kind | None, meaning("The kind of lock that the threads wait for.")]
    lock: Annotated[LockId | None, meaning("The lock; null: none, or several of one class.")]
    lock_name: Annotated[str, meaning("The name of the lock or of its class.")]
    stack: Annotated[StackId, STACK]
    idle: Annotated[bool, meaning("The threads wait for work.")]
    longest_s: Annotated[Number | None, meaning("Seconds of the longest wait.")]
    holders: Annotated[list[Tid], meaning("The holders of the locks that the threads wait for.")]
    holds: Annotated[list[LockId], meaning("The locks that each of the threads holds.")]
