"""Locks in the document of a snapshot (snapshot_document.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Struct, UnsetType, defstruct, field

from locktop.collector.extension.discovery import sections
from locktop.collector.model import CONTENTION_KINDS, WAITS_ALONE, HolderEvidence, Kind
from locktop.collector.model.lock_figures import LockFigures
from locktop.collector.render.documents.snapshot_fields import (
    HOLD_P50,
    HOLD_P99,
    IDLE_LOCK,
    NO_ADDRESS,
    UNHELD_WAIT,
    WAIT_MAX_BOUND,
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
from locktop.collector.render.documents.snapshot_threads import ActivityEntry


class StackInterval(Struct, kw_only=True, gc=False):
    """The part of a wait stack's figures from between the two scans of -d."""

    count: Annotated[int, meaning("Waits that ended.")]
    wait_s: Annotated[Number, meaning("Seconds waited.")]


class PythonShareEntry(Struct, kw_only=True, gc=False):
    """Samples of waits from one native stack that had the same Python functions."""

    stack: Annotated[
        StackId,
        meaning("The stack with the Python functions; the native one: they were not read."),
    ]
    samples: Annotated[Count, meaning("How often a sample met such a wait.")]
    waits: Annotated[Count, meaning("How many waits these samples met.")]


class WaitStackEntry(Struct, kw_only=True, gc=False):
    """The waits for one lock from one stack."""

    stack: Annotated[StackId, meaning('The number of the stack in "stacks".')]
    count: Annotated[Count, meaning("Waits that ended.")]
    wait_s: Annotated[Number, meaning("Seconds waited.")]
    idle: Annotated[bool, meaning("The waits were idle waits.")] = False
    python: Annotated[
        list[PythonShareEntry] | UnsetType,
        meaning("Python with the library: samples, which estimate the shares of wait_s."),
    ] = UNSET
    interval: Annotated[StackInterval | UnsetType, meaning("Only with -d.")] = UNSET

    def __post_init__(self) -> None:
        if self.python is UNSET:
            self.python = []


class BlameInterval(Struct, kw_only=True, gc=False):
    """The part of the blame from between the two scans of -d."""

    wait_s: Annotated[Number, meaning("Seconds waited because of the holder.")]


class BlameEntry(Struct, kw_only=True, gc=False):
    """Wait time charged to a holder of the lock."""

    tid: Annotated[Tid, meaning("The holder; 0: a thread that ended, or no known holder.")]
    site: Annotated[
        Address,
        meaning("Where the holder took the lock; of a futex or semaphore, the wake."),
    ] = NO_ADDRESS
    through: Annotated[LockId, meaning("The lock that the holder waited for; 0: none.")] = 0
    wait_s: Annotated[Number, meaning("Seconds waited because of the holder.")]
    interval: Annotated[BlameInterval | UnsetType, meaning("Only with -d.")] = UNSET


class BlameRootEntry(Struct, kw_only=True, gc=False):
    """Wait time charged to the end of a chain: a holder that waited for no lock."""

    tid: Annotated[Tid, meaning("The holder; 0 as in blame.")]
    lock: Annotated[LockId, meaning("The lock that the holder held.")]
    site: Annotated[Address, meaning("Where the holder took that lock; of a futex, as in blame.")]
    wait_s: Annotated[Number, meaning("Seconds waited because of the holder.")]


class LockInterval(LockFigures, kw_only=True, frozen=True, gc=False):
    """The part of a lock's or a class's figures from between the two scans of -d."""

    wait_p50_s: Annotated[Number | None, WAIT_P50] = None
    wait_p99_s: Annotated[Number | None, WAIT_P99] = None
    hold_p50_s: Annotated[Number | None, HOLD_P50] = None
    hold_p99_s: Annotated[Number | None, HOLD_P99] = None


class UnitTakerEntry(Struct, kw_only=True, gc=False):
    """A thread that took units of a semaphore and did not post them."""

    tid: Annotated[Tid, meaning("The thread.")]
    units: Annotated[Count, meaning("How many units.")]
    site: Annotated[Address, meaning("Where it took the first of these units.")] = NO_ADDRESS
    stack: Annotated[
        StackId, meaning("The stack of that call, if the thread had to wait; 0: not known.")
    ] = 0
    took_more: Annotated[
        bool,
        meaning("The thread took further units elsewhere meanwhile, and may have those."),
    ] = False


class TakenUnitsEntry(Struct, kw_only=True, gc=False):
    """The units of a semaphore, all of which threads took and did not post."""

    all: Annotated[Count, meaning("How many units there are.")]
    takers: Annotated[list[UnitTakerEntry], meaning("The threads, living ones first.")]
    ended: Annotated[Count, meaning("Units of ended threads of which no more is known.")] = 0


class ProbableHolderEntry(Struct, kw_only=True, gc=False):
    """A thread that probably holds a lock which names no holder."""

    tid: Annotated[Tid, meaning("The tid of the thread.")]
    evidence: Annotated[
        HolderEvidence,
        meaning(
            "guard: the code of the thread goes on to release the lock. waker: the thread got it"
            " last after a wait, and has not released it since. python: the thread is in a `with`"
            " block of the lock."
        ),
    ]
    site: Annotated[Address, meaning("Where the thread is in the function that shows it.")] = (
        NO_ADDRESS
    )


# msgspec lets a record that changes have the fields of one that does not; mypy knows dataclasses.
class _NamedFigures(LockFigures, frozen=False, gc=False):  # type: ignore[misc]
    """The keys that stand before the figures."""

    id: Annotated[LockId, meaning("The id of the lock in this document.")]
    kind: Annotated[Kind, meaning("The kind of the lock.")]
    name: Annotated[str, meaning("The name: given, else of the variable, else of the source.")]
    address: Annotated[Address, meaning("The address of the lock.")] = NO_ADDRESS
    type: Annotated[
        str,
        meaning("A futex: the type that the functions of its waiters tell, such as Rust Mutex."),
    ] = ""


class CoreLockEntry(  # type: ignore[misc]
    _NamedFigures,
    kw_only=True,
    frozen=False,
    gc=False,
    rename={
        "class_name": "class",
        "holder_activity": "holder_now",
        "wait_max_is_lower_bound": "wait_max_at_least",
    },
):
    """A lock without the keys of extensions."""

    wait_error_s: Annotated[
        Number, meaning("Sampled: one standard deviation of wait_s in seconds.")
    ] = 0.0
    unheld_wait_s: Annotated[Number | None, UNHELD_WAIT] = None
    wait_max_s: Annotated[Number, meaning("Seconds of the longest wait.")] = 0.0
    wait_max_is_lower_bound: Annotated[bool, WAIT_MAX_BOUND] = False
    wait_p50_s: Annotated[Number | None, WAIT_P50] = None
    wait_p99_s: Annotated[Number | None, WAIT_P99] = None
    wait_histogram: Annotated[
        HistogramEntry | None, meaning("The waits in contended by length.")
    ] = None
    idle: Annotated[bool | UnsetType, IDLE_LOCK] = UNSET
    hold_max_s: Annotated[Number | None, meaning("Seconds of the longest timed hold.")] = None
    hold_p50_s: Annotated[Number | None, HOLD_P50] = None
    hold_p99_s: Annotated[Number | None, HOLD_P99] = None
    hold_histogram: Annotated[
        HistogramEntry | None,
        meaning("The holds in hold_timed by length; only if a thread ever waited for the lock."),
    ] = None
    holders: Annotated[list[Tid], meaning("The tids of the present holders.")] = field(
        default_factory=list
    )
    waiters: Annotated[list[Tid], meaning("The tids of the present waiters, longest first.")] = (
        field(default_factory=list)
    )
    wait_stacks: Annotated[
        list[WaitStackEntry], meaning("Where the waits came from, most wait first.")
    ] = field(default_factory=list)
    blame: Annotated[
        list[BlameEntry], meaning("The waiting time by the holder that caused it.")
    ] = field(default_factory=list)
    blame_roots: Annotated[
        list[BlameRootEntry] | UnsetType,
        meaning("The same by the end of each chain; only if a holder waited for a lock itself."),
    ] = UNSET
    destroyed: Annotated[bool, meaning("The program destroyed the lock.")] = False
    recursive: Annotated[bool, meaning("The holder may take the lock again.")] = False
    writers_first: Annotated[bool, meaning("Readers queue behind a waiting writer.")] = False
    holder_activity: Annotated[
        ActivityEntry | None, meaning("What the holder of a lock with waiters does now.")
    ] = None
    #: Behind ``holder_activity``, as above.
    class_name: Annotated[str | UnsetType, meaning("The name of the lock class, if any.")] = UNSET
    foreign_releases: Annotated[
        bool, meaning("Threads that did not hold the lock released it: holders may be wrong.")
    ] = False
    used_as_lock: Annotated[
        bool, meaning("A semaphore: only threads that took it have posted it.")
    ] = False
    taken_units: Annotated[
        TakenUnitsEntry | None,
        meaning("A semaphore used as a lock: who took its units, if all are taken."),
    ] = None
    holders_probable: Annotated[
        list[ProbableHolderEntry],
        meaning(
            "Threads that probably hold the lock, if no holder is known. They are never part of a"
            " certain deadlock."
        ),
    ] = field(default_factory=list)
    readers: Annotated[
        Count,
        meaning("Sampled rwlock: how many threads have it to read. Their tids are not known."),
    ] = 0
    interval: Annotated[LockInterval | UnsetType, meaning("Only with -d.")] = UNSET

    #: Rates are not saved.
    rates = property(lambda self: WAITS_ALONE)

    def __post_init__(self) -> None:
        if self.idle is UNSET:
            self.idle = self.kind not in CONTENTION_KINDS


if TYPE_CHECKING:
    LockEntry = CoreLockEntry
else:
    LockEntry = defstruct(
        "LockEntry",
        [
            (name, Annotated[key.entry | None, meaning(key.meaning)], None)
            for name, section in sections().items()
            if (key := section.lock_key) is not None
        ],
        bases=(CoreLockEntry,),
        namespace={
            "__doc__": "A lock. The figures cover the time since the process started, or since"
            " sampling began."
        },
        module=__name__,
        kw_only=True,
        gc=False,
    )


class _NamedSums(LockFigures, frozen=False, gc=False):  # type: ignore[misc]
    """The keys of a class that stand before the figures."""

    name: Annotated[str, meaning("The common name; indexes are empty.")]
    kind: Annotated[Kind, meaning("The kind of the locks.")]
    instances: Annotated[Count, meaning("How many locks the class has.")]
    destroyed: Annotated[Count, meaning("How many of the locks the program destroyed.")]
    locks: Annotated[list[LockId], meaning("The ids of the locks with most wait, at most 64.")]


class LockClassEntry(  # type: ignore[misc]
    _NamedSums,
    kw_only=True,
    frozen=False,
    gc=False,
    rename={"wait_max_is_lower_bound": "wait_max_at_least"},
):
    """At least two locks of one name and kind. The figures are sums over the locks."""

    unheld_wait_s: Annotated[Number | None, UNHELD_WAIT] = None
    wait_max_s: Annotated[Number, meaning("Seconds of the longest wait.")]
    wait_max_is_lower_bound: Annotated[bool, WAIT_MAX_BOUND] = False
    wait_p50_s: Annotated[Number | None, WAIT_P50] = None
    wait_p99_s: Annotated[Number | None, WAIT_P99] = None
    idle: Annotated[bool, IDLE_LOCK]
    hold_max_s: Annotated[Number | None, meaning("Seconds of the longest timed hold.")]
    hold_p50_s: Annotated[Number | None, HOLD_P50] = None
    hold_p99_s: Annotated[Number | None, HOLD_P99] = None
    holders: Annotated[list[Tid], meaning("The tids of the present holders.")]
    waiters: Annotated[list[Tid], meaning("The tids of the present waiters.")]
    interval: Annotated[LockInterval | UnsetType, meaning("Only with -d.")] = UNSET
