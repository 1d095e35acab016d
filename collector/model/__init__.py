"""The model: plain immutable data that one scan of a process showed.

The model knows neither its source (a preloaded process, /proc, a recording) nor its viewer. Times
are seconds (float). Addresses and ids are ints. ``None`` means "not measured": sums and intervals
of such a figure are None too (model/figures.py). The id 0 of a thread, stack or call site means
none, or unknown. A ``Snapshot`` never changes, so threads may share a snapshot.

The package has the names of its modules that others use. pyproject.toml lets it export its imports.
"""

from locktop.collector.model.blocking import Behind, BlockingRoot, BlockingTree, BlockingWaiter
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
    Hang,
    Mark,
    Misuse,
    OrderCycle,
    OrderEdge,
    OrderWay,
    Pattern,
)
from locktop.collector.model.frames import is_library_wrapper, is_standard_library
from locktop.collector.model.groups import LockClass, ThreadGroup
from locktop.collector.model.histograms import (
    Histogram,
    PackedHistogram,
    PlainHistogram,
    lower_ticks,
    percentile_s,
)
from locktop.collector.model.kinds import (
    CONTENTION_KINDS,
    HELD_KINDS,
    NAMED_BY_STACK_KINDS,
    SIGNALLED_KINDS,
    TRAITS,
    ActivityState,
    BlockReason,
    ChildEvent,
    Confidence,
    HolderEvidence,
    Kind,
    MisuseKind,
    PatternName,
    RootKind,
    ThreadState,
)
from locktop.collector.model.lock_figures import figure_columns
from locktop.collector.model.locks import (
    GIL,
    WAITS_ALONE,
    Blame,
    LazyBlame,
    Lock,
    LockRates,
    PackedBlame,
    ProbableHolder,
    PythonShare,
    WaitPart,
    WaitStack,
    behind_s,
    blamed_sites,
    further_locks,
    unheld_s,
)
from locktop.collector.model.moments import (
    ALERTS,
    MarkRecord,
    Notable,
    NotableKind,
    SignalRecord,
    WaitRecord,
)
from locktop.collector.model.snapshot import Contents, Draft, Process, Snapshot
from locktop.collector.model.stacks import Frame
from locktop.collector.model.threads import (
    AwaitedChild,
    ChildWaits,
    Held,
    LockUse,
    PerfCounter,
    PerfCounters,
    Switches,
    TakenUnits,
    Thread,
    ThreadActivity,
    ThreadElsewhere,
    TimeSplit,
    UnitTaker,
    UnobservedWait,
    Wait,
)
from locktop.collector.model.timeline import (
    CountedSpan,
    Flow,
    HolderSight,
    HoldersSeen,
    HoldShare,
    Lane,
    LaneSpan,
    LaneState,
    LockHolds,
    ScanSample,
    ThreadSample,
    TimedWait,
    TimeLine,
    WaitHolders,
    Window,
)
