"""The model: what one scan of a process showed, as plain immutable data.

The model does not know where the data came from (a preloaded process, /proc, a recording) or who
draws it. Times are seconds as floats, addresses are ints, ids are ints. ``None`` means "not
measured". A ``Snapshot`` may be handed to another thread; it never changes.
"""

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
    "Blame",
    "BlockReason",
    "Confidence",
    "Contents",
    "Counter",
    "Counters",
    "Deadlock",
    "DeadlockEdge",
    "Draft",
    "Event",
    "Frame",
    "Held",
    "Kind",
    "Lock",
    "LockRates",
    "Mark",
    "Misuse",
    "MisuseKind",
    "OrderCycle",
    "OrderEdge",
    "Pattern",
    "PatternName",
    "Process",
    "Snapshot",
    "Switches",
    "Thread",
    "ThreadActivity",
    "ThreadState",
    "TimeSplit",
    "UnobservedWait",
    "Use",
    "Wait",
    "WaitStack",
]
