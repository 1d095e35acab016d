"""Findings and events in the document of a snapshot (snapshot_document.py)."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Struct, UnsetType

from locktop.collector.model import (
    BlockReason,
    Confidence,
    Kind,
    MisuseKind,
    PatternName,
    RootKind,
)
from locktop.collector.render.documents.snapshot_fields import (
    LOWER_BOUND,
    NO_ADDRESS,
    SITE,
    STACK,
    Address,
    Count,
    IdKey,
    LockId,
    Number,
    StackId,
    Tid,
    meaning,
)


class DeadlockEdgeEntry(Struct, kw_only=True, gc=False, rename={"reason": "how"}):
    """One thread of a cycle."""

    tid: Annotated[Tid, meaning("The thread that waits.")]
    waits_for: Annotated[LockId, meaning("The id of the lock.")]
    held_by: Annotated[Tid, meaning("The thread that blocks; 0: no thread is left.")] = 0
    stack: Annotated[StackId, STACK] = 0
    site: Annotated[Address, meaning("Where the blocking thread took the lock.")] = NO_ADDRESS
    behind: Annotated[bool, meaning("The blocking thread is a writer that waits.")] = False
    reason: Annotated[BlockReason, meaning("Why that thread blocks.")] = BlockReason.HELD
    pid: Annotated[Tid, meaning("The process of the thread; 0: the observed process.")] = 0

    def __post_init__(self) -> None:
        # Old snapshots have only "behind".
        if self.behind:
            self.reason = BlockReason.BEHIND


class DeadlockEntry(Struct, kw_only=True, gc=False, rename={"is_lower_bound": "at_least"}):
    """A cycle of threads that wait for each other."""

    certain: Annotated[bool, meaning("The deadlock is certain.")] = False
    doubt: Annotated[str, meaning("Why the deadlock is only possible.")] = ""
    since_s: Annotated[Number, meaning("Seconds since the cycle closed.")] = 0.0
    is_lower_bound: Annotated[bool, LOWER_BOUND] = False
    cycle: Annotated[list[DeadlockEdgeEntry], meaning("The threads of the cycle in order.")] = []
    stuck: Annotated[list[Tid], meaning("The tids that wait behind the cycle.")] = []
    stuck_in_part: Annotated[
        bool | UnsetType,
        meaning("Only if true: threads behind an earlier deadlock wait behind this cycle, too."),
    ] = UNSET

    def __post_init__(self) -> None:
        # The model has a bool. The document has the key only if it is true.
        self.stuck_in_part = self.stuck_in_part is True


class HangEntry(Struct, kw_only=True, gc=False, rename={"is_lower_bound": "at_least"}):
    """All threads wait, and only one of them could end any of the waits."""

    certain: Annotated[bool, meaning("Nothing outside of the process can end a wait.")] = False
    doubt: Annotated[str, meaning("What else may end a wait.")] = ""
    since_s: Annotated[Number, meaning("Seconds since the last of the waits began.")] = 0.0
    is_lower_bound: Annotated[bool, LOWER_BOUND] = False
    tids: Annotated[list[Tid], meaning("The threads that wait, in order of tid.")] = []
    changed_words: Annotated[
        dict[IdKey, Count],
        meaning("By tid: the value of the word, if it has changed and nobody woke the thread."),
    ] = {}
    calls: Annotated[
        dict[IdKey, str], meaning("By tid: the call of a thread that waits at a pipe.")
    ] = {}
    gil_waiters: Annotated[
        list[Tid], meaning("The threads that wait for the lock of a Python interpreter (GIL).")
    ] = []


class BlockingRootEntry(Struct, kw_only=True, gc=False):
    """A thread or a lock that other threads wait for, and that does not wait itself."""

    kind: Annotated[
        RootKind, meaning("holder: one thread; lock: the holder is not known; cycle: threads.")
    ]
    tids: Annotated[list[Tid], meaning("The holder, or the threads of the cycle.")]
    locks: Annotated[list[LockId], meaning("The locks of the root, most waiting first.")]
    threads: Annotated[Count, meaning("Threads behind it; of a cycle, with its own threads.")]
    waited_s: Annotated[Number, meaning("Seconds of the present waits behind it, in sum.")]
    longest: Annotated[Tid, meaning("The thread behind it that waits longest.")]


class OrderEdgeEntry(Struct, kw_only=True, gc=False, rename={"from_": "from", "site": "from_site"}):
    """A thread took, or wanted, one lock while it held another."""

    from_: Annotated[LockId, meaning("The held lock.")]
    to: Annotated[LockId, meaning("The lock that the thread took or wanted.")]
    tid: Annotated[Tid, meaning("The thread; it may have ended.")] = 0
    stack: Annotated[StackId, meaning('Where the thread took "to".')] = 0
    site: Annotated[Address, meaning('Where the thread had taken "from".')] = NO_ADDRESS
    shared: Annotated[bool, meaning('The thread wanted "to" to read.')] = False
    from_shared: Annotated[bool, meaning('The thread held "from" to read.')] = False


class OrderWayEntry(Struct, kw_only=True, gc=False):
    """The same potential deadlock with other stacks, perhaps of other threads."""

    edges: Annotated[list[OrderEdgeEntry], meaning("One edge for each thread.")] = []
    confidence: Annotated[Confidence, meaning("As of a potential deadlock.")] = Confidence.HIGH
    why: Annotated[str, meaning("What is not known, if the confidence is not high.")] = ""


class OrderCycleEntry(Struct, kw_only=True, gc=False):
    """A potential deadlock: locks that threads took in different orders."""

    locks: Annotated[list[LockId], meaning("The ids of the locks.")] = []
    edges: Annotated[list[OrderEdgeEntry], meaning("One edge for each thread.")] = []
    confidence: Annotated[Confidence, meaning("How sure it is that the deadlock can happen.")] = (
        Confidence.HIGH
    )
    why: Annotated[str, meaning("What is not known, if the confidence is not high.")] = ""
    classes: Annotated[
        list[str], meaning("The names of lock classes, for a cycle of classes only.")
    ] = []
    ways: Annotated[list[OrderWayEntry], meaning("The same by other stacks.")] = []
    ways_left_out: Annotated[bool, meaning('There may be more than "ways" has.')] = False


class EventEntry(Struct, kw_only=True, gc=False):
    """A contended acquisition, or a wait, that ended."""

    tid: Annotated[Tid, meaning("The thread that waited.")]
    lock: Annotated[LockId, meaning("The id of the lock.")]
    kind: Annotated[Kind, meaning("The kind of the lock.")]
    ago_s: Annotated[Number, meaning("Seconds since the wait began.")] = 0.0
    wait_s: Annotated[Number, meaning("Seconds waited.")] = 0.0
    hold_s: Annotated[Number | None, meaning("Seconds held.")] = None
    stack: Annotated[StackId, STACK] = 0
    holder: Annotated[Tid, meaning("The holder when the wait began; 0: not known.")] = 0
    site: Annotated[Address, SITE] = NO_ADDRESS
    timed_out: Annotated[bool, meaning("The wait ended by its timeout.")] = False


class MarkEntry(Struct, kw_only=True, gc=False):
    """A text that the program recorded with locktop_mark()."""

    tid: Annotated[Tid, meaning("The thread that made the mark.")]
    ago_s: Annotated[Number, meaning("Seconds since the mark.")] = 0.0
    text: Annotated[str, meaning("The text of the mark.")] = ""


class MisuseEntry(Struct, kw_only=True, gc=False):
    """A use of a lock that pthreads does not allow."""

    kind: Annotated[MisuseKind, meaning("What the program did.")]
    lock: Annotated[LockId, meaning("The id of the lock.")]
    tid: Annotated[Tid, meaning("The first thread that did so.")] = 0
    other: Annotated[
        Count, meaning("The thread that held the lock, 0: not known; two_mutexes: a lock id.")
    ] = 0
    stack: Annotated[StackId, STACK] = 0
    count: Annotated[Count, meaning("How often the program did so.")] = 0
    ago_s: Annotated[Number, meaning("Seconds since the first time.")] = 0.0


class PatternEntry(Struct, kw_only=True, gc=False):
    """A contention pattern (docs/patterns.md)."""

    name: Annotated[PatternName, meaning("The name of the pattern.")]
    lock: Annotated[LockId | None, meaning("The id of the lock; null: no single lock.")] = 0
    tids: Annotated[list[Tid], meaning("The threads that show the pattern.")] = []
    evidence: Annotated[str, meaning("The figures that show the pattern.")] = ""
    advice: Annotated[str, meaning("What to change.")] = ""


class UnobservedWaitEntry(Struct, kw_only=True, gc=False, rename={"duration_s": "since_s"}):
    """A wait in a futex call that the kernel shows and the library does not observe."""

    tid: Annotated[Tid, meaning("The thread that waits.")]
    address: Annotated[Address, meaning("The address of the futex; 0x0: not known.")] = NO_ADDRESS
    name: Annotated[str, meaning("The name of the variable.")] = ""
    duration_s: Annotated[Number | None, meaning("Seconds of the wait, a lower bound.")] = None
    stack: Annotated[StackId, STACK] = 0
    type: Annotated[str, meaning("The type that the functions of the waiter tell.")] = ""
    idle: Annotated[bool | None, meaning("An idle wait; null: no rule decides.")] = None
    why: Annotated[str, meaning("The idle rule that decided.")] = ""
