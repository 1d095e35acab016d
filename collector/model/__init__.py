"""The model: what one scan of a process showed, as plain immutable data.

The model does not know where the data came from (a preloaded process, /proc, a recording) or who
draws it. Times are seconds as floats, addresses are ints, ids are ints. ``None`` means "not
measured". A ``Snapshot`` may be handed to another thread; it never changes.
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
from locktop.collector.model.locks import Blame, Lock, LockRates, WaitStack
from locktop.collector.model.snapshot import Contents, Draft, Process, Snapshot
from locktop.collector.model.stacks import Frame
from locktop.collector.model.threads import (
    Counter,
    Counters,
    Held,
    Switches,
    Thread,
    ThreadActivity,
    TimeSplit,
    UnobservedWait,
    Use,
    Wait,
)

__all__ = [
    "CONTENTION_KINDS",
    "SIGNALLED_KINDS",
    "ActivityState",
    "Avoidance",
    "Blame",
    "BlockReason",
    "Confidence",
    "Contents",
    "Counter",
    "Counters",
    "Deadlock",
    "DeadlockEdge",
    "DeadlockReport",
    "Draft",
    "Event",
    "Follower",
    "Frame",
    "Held",
    "Kind",
    "Lock",
    "LockClass",
    "LockName",
    "LockRates",
    "LockingStep",
    "Mark",
    "Member",
    "Misuse",
    "MisuseKind",
    "OrderCycle",
    "OrderEdge",
    "Pattern",
    "PatternName",
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
    "Use",
    "Wait",
    "WaitStack",
]
