"""The model: plain immutable data that one scan of a process showed.

The model knows neither its source (a preloaded process, /proc, a recording) nor its viewer. Times
are seconds (float). Addresses and ids are ints. ``None`` means "not measured": sums and intervals
of such a figure are None too (model/figures.py). The id 0 of a thread, stack or call site means
none, or unknown. A ``Snapshot`` never changes, so threads may share a snapshot.
"""

from locktop.collector.model.deadlock_report import (
    Avoidance,
    DeadlockReport,
    Follower,
    LockingStep,
    LockName,
    Member,
    Remedy,
    Taken,
)
from locktop.collector.model.findings import (
    Deadlock,
    DeadlockEdge,
    Event,
    Mark,
    Misuse,
    OrderCycle,
    OrderEdge,
    OrderWay,
    Pattern,
)
from locktop.collector.model.groups import LockClass, ThreadGroup
from locktop.collector.model.kinds import (
    CONTENTION_KINDS,
    SIGNALLED_KINDS,
    ActivityState,
    BlockReason,
    Confidence,
    Kind,
    MisuseKind,
    PatternName,
    ThreadState,
)
from locktop.collector.model.locks import (
    WAITS_ALONE,
    Blame,
    LazyBlame,
    Lock,
    LockRates,
    PackedBlame,
    WaitStack,
    behind_s,
    blamed_sites,
    further_locks,
    unheld_s,
)
from locktop.collector.model.moments import Notable, NotableKind, WaitRecord
from locktop.collector.model.snapshot import Contents, Draft, Process, Snapshot
from locktop.collector.model.stacks import Frame
from locktop.collector.model.threads import (
    Held,
    LockUse,
    PerfCounter,
    PerfCounters,
    Switches,
    Thread,
    ThreadActivity,
    TimeSplit,
    UnobservedWait,
    Wait,
)

__all__ = [
    "CONTENTION_KINDS",
    "SIGNALLED_KINDS",
    "WAITS_ALONE",
    "ActivityState",
    "Avoidance",
    "Blame",
    "BlockReason",
    "Confidence",
    "Contents",
    "Deadlock",
    "DeadlockEdge",
    "DeadlockReport",
    "Draft",
    "Event",
    "Follower",
    "Frame",
    "Held",
    "Kind",
    "LazyBlame",
    "Lock",
    "LockClass",
    "LockName",
    "LockRates",
    "LockUse",
    "LockingStep",
    "Mark",
    "Member",
    "Misuse",
    "MisuseKind",
    "Notable",
    "NotableKind",
    "OrderCycle",
    "OrderEdge",
    "OrderWay",
    "PackedBlame",
    "Pattern",
    "PatternName",
    "PerfCounter",
    "PerfCounters",
    "Process",
    "Remedy",
    "Snapshot",
    "Switches",
    "Taken",
    "Thread",
    "ThreadActivity",
    "ThreadGroup",
    "ThreadState",
    "TimeSplit",
    "UnobservedWait",
    "Wait",
    "WaitRecord",
    "WaitStack",
    "behind_s",
    "blamed_sites",
    "further_locks",
    "unheld_s",
]
