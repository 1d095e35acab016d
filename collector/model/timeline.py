"""Time lines: what each thread did when. Times are nanoseconds since 1970, UTC (``_ns``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum

from msgspec import Struct

from locktop.collector.model.moments import Notable, WaitRecord
from locktop.collector.model.snapshot import Snapshot
from locktop.collector.model.threads import Held, ThreadActivity, Wait


class LaneState(StrEnum):
    """The state of a thread. Of several states at one moment, a lane has the first of these."""

    WAITING = "waits"  # for a lock, in contention
    IDLE = "idle"  # waits for work
    HOLDING = "holds"  # has at least one lock
    RUNNING = "runs"  # on a CPU, or ready to run; known from scans alone
    SLEEPING = "sleeps"  # asleep for another reason; known from scans alone
    UNKNOWN = "unknown"  # no scan showed the thread then

    # The hash of Enum is Python code, and each cell of each lane looks up states.
    __hash__ = str.__hash__


class LaneSpan(Struct, frozen=True, gc=False):
    """A part of a lane with one state."""

    from_ns: int
    to_ns: int  # exclusive
    state: LaneState
    lock: int = 0  # id of the lock that the thread waits for or holds; 0: none


class CountedSpan(Struct, frozen=True, gc=False):
    """The time between two scans, of which the sums are known from counters, and no single wait."""

    from_ns: int
    to_ns: int  # exclusive
    #: Nanoseconds by state, and by the lock that is waited for; 0: which lock is not known.
    sums: Mapping[tuple[LaneState, int], int]


class TimedWait(Struct, frozen=True, gc=False):
    """A wait on a time line."""

    record: WaitRecord
    idle: bool  # for work
    is_open: bool = False  # the newest scan showed the wait: its end is unknown
    is_lower_bound: bool = False  # the wait had begun before the first scan that showed it


class Lane(Struct, frozen=True):
    """One thread. The spans lie side by side; with the counted spans they fill the time line."""

    tid: int
    name: str
    spans: tuple[LaneSpan, ...]
    waits: tuple[TimedWait, ...]  # in order of their begin
    wait_ns: int  # sum of the spans that wait
    counted: tuple[CountedSpan, ...] = ()  # the time that is in no span, the oldest first


class Flow(Struct, frozen=True, gc=False):
    """A hand-over: a thread released a lock, and another thread got the lock after its wait."""

    lock: int  # id
    from_tid: int
    released_ns: int | None  # None: the release was not recorded
    to_tid: int
    woken_ns: int  # the wait of ``to_tid`` was over


class HolderSight(Struct, frozen=True, gc=False):
    """The holders of a lock in one scan."""

    time_ns: int
    tids: tuple[int, ...]  # (): readers whose ids are not known
    are_readers: bool


class LockHolds(Struct, frozen=True):
    """The known holds of a lock: from ring records, and from scans that showed a hold."""

    records: tuple[WaitRecord, ...]  # in order of ``got_ns``
    #: For each record, the latest end of that record and of those before it.
    latest_end_ns: tuple[int, ...]
    activities: tuple[tuple[int, ThreadActivity], ...]  # of holders, with the time of the scan
    sights: tuple[HolderSight, ...] = ()  # the scans that show a holder, the oldest first
    scan_times: tuple[int, ...] = ()  # of all scans


class HoldShare(Struct, frozen=True, gc=False):
    """The part of another thread's wait in which a thread had the lock."""

    tid: int
    held_ns: int
    site: int  # return address of the call that took the lock, 0 unknown
    stack: int = 0  # id of the stack of the wait for the lock; 0: there was none, or it is unknown
    is_shared: bool = False  # as a reader of an rwlock
    is_lower_bound: bool = False  # a scan showed the hold, and its end is not known
    activity: ThreadActivity | None = None  # what the thread did in the hold, by the last scan


class HoldersSeen(Struct, frozen=True, gc=False):
    """The holders of a lock that the scans during a wait show."""

    scans: int  # number of these scans
    held: int  # number of the scans that show a holder
    tids: tuple[int, ...]  # who had the lock in most scans comes first; (): not known
    are_readers: bool  # all of them


class WaitHolders(Struct, frozen=True):
    """The threads that had the lock during a wait."""

    wait_ns: int  # of the wait, the part in the span of the time line
    is_part: bool  # ``wait_ns`` is not the whole wait
    shares: tuple[HoldShare, ...]  # the largest first; readers may have a lock together
    unrecorded_ns: int  # the part of ``wait_ns`` without a known hold
    is_estimate: bool = False  # from samples
    seen: HoldersSeen | None = None  # None: no scan of that time shows a holder


class TimeLine(Struct, frozen=True):
    """All lanes of a span of time. ``snapshot`` is the newest of the span: it has the names."""

    from_ns: int
    to_ns: int
    lanes: tuple[Lane, ...]  # the longest wait first
    flows: tuple[Flow, ...]  # in order of ``woken_ns``
    notables: tuple[Notable, ...]
    is_sampled: bool  # all waits are estimates
    snapshot: Snapshot
    lost_records: int = 0  # ring records of the span that are known to be lost
    holds: Mapping[int, LockHolds] = {}  # by id, of the locks with waits in contention
    #: Parts with too many or too many lost records: what all threads waited for each lock.
    counted: tuple[CountedSpan, ...] = ()
    is_coarse: bool = False  # of few scans: another reading can tell more


class Window(Struct, frozen=True, gc=False):
    """A span of time that is divided into cells of almost the same length."""

    from_ns: int
    to_ns: int  # exclusive
    count: int  # of cells

    @property
    def span_ns(self) -> int:
        """The length of the window."""
        return self.to_ns - self.from_ns

    def edge_ns(self, cell: int) -> int:
        """Return where a cell begins; ``count`` gives the end of the last cell."""
        return self.from_ns + cell * self.span_ns // self.count

    def cell_at(self, time_ns: int) -> int:
        """Return the cell that has a moment; the first or the last one for a moment outside."""
        if time_ns < self.from_ns:
            return 0
        # The greatest number whose edge is not behind the moment.
        cell = ((time_ns - self.from_ns + 1) * self.count - 1) // self.span_ns
        return min(cell, self.count - 1)

    def parts(self, from_ns: int, to_ns: int) -> Iterator[tuple[int, int]]:
        """Yield each cell that a span touches, with the nanoseconds of the span in the cell."""
        begin, end = max(from_ns, self.from_ns), min(to_ns, self.to_ns)
        if begin >= end:
            return
        cell = self.cell_at(begin)
        while begin < end:
            edge = min(end, self.edge_ns(cell + 1))
            if edge > begin:
                yield cell, edge - begin
            begin = edge
            cell += 1


class ThreadSample(Struct, frozen=True):
    """One thread in one scan, as far as a time line needs it."""

    name: str
    state: LaneState  # without waits and holds
    wait: Wait | None
    holds: tuple[Held, ...]
    contended_s: float = 0.0  # waited in contention since the thread began
    idle_s: float = 0.0  # waited for work since then


class ScanSample(Struct, frozen=True):
    """One scan, as far as a time line needs it."""

    time_ns: int
    is_sampled: bool  # as Snapshot.is_sampled
    lost_records: int  # since the process started
    threads: Mapping[int, ThreadSample]  # the living threads by tid
    is_first: bool = False  # the scans before are of another sender of a stream
    activities: Mapping[int, ThreadActivity] = {}  # of a holder, by lock
    readers: Mapping[int, int] = {}  # by lock: number of readers whose ids are not known
    #: By lock: seconds that all threads waited since the process started, and of these the idle.
    lock_waits: Mapping[int, tuple[float, float]] = {}
