"""Threads: their waits, holds, activity and use of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from locktop.collector.model.histograms import KeptHistogram, percentile_s
from locktop.collector.model.kinds import ActivityState, ChildEvent, Kind, ThreadState


class Wait(Struct, frozen=True, gc=False):
    """A wait that goes on."""

    lock: int  # id
    kind: Kind
    duration_s: float  # seconds so far
    holders: tuple[int, ...]  # ids of the known holders
    #: id of the waiter's stack, 0 unknown; from 2**32 on the id belongs to this wait alone
    stack: int
    site: int  # return address of the waiting call
    seq: int  # number that differs for each wait of a thread
    timed: bool = False  # has a timeout
    shared: bool = False  # rwlock: the thread wants to read
    holder_seen: int = 0  # id of the owner when the wait began; 0: unknown
    pshared: bool = False  # another process may end the wait
    awaits: int = 0  # join: id of the joined thread, 0 unknown
    parties: int = 0  # barrier: number of threads that it releases together
    idle: bool = False  # waits for work: no contention
    is_lower_bound: bool = False  # the wait had begun before the first scan that showed it
    #: sampled rwlock: how often threads took it to read during the wait, at least
    later_reads: int = 0
    #: sampled: how many sleeps with a time limit came before the present one in ``duration_s``
    renewals: int = 0


class ThreadElsewhere(Struct, frozen=True, gc=False):
    """A thread of another process that has a lock of the watched process, in shared memory."""

    tid: int  # as the lock's word has it
    pid: int = 0  # its process, in locktop's own pid namespace; 0: not known
    comm: str = ""  # the name of that process; "": locktop may not read whether it has the memory
    name: str = ""  # the name of the thread; "": the first thread of its process
    is_freed_at_exit: bool = False  # the kernel frees the lock at the end of the thread
    waits: bool = False  # for a futex, without a time limit: maybe for the watched process


class ChildWaits(Struct, frozen=True, gc=False):
    """A child of the watched process, or a child of one, whose threads wait for locks."""

    pid: int  # in locktop's own pid namespace
    comm: str
    waiting: int  # number of threads
    longest_s: float  # lower bound of the longest of these waits


class AwaitedChild(Struct, frozen=True, gc=False):
    """A child of the watched process for which one of its threads waits without a time limit."""

    waiter: str  # the name of the thread
    pid: int  # of the child, in locktop's own pid namespace
    comm: str
    others: int  # other children that could end the wait as well
    event: ChildEvent


class UnobservedWait(Struct, frozen=True, gc=False):
    """A wait in a futex call that the kernel shows and the library does not observe.

    The call is compiled into the program, lies inside the C library, or began before the library
    watched the thread.
    """

    tid: int
    address: int = 0  # address of the futex, 0 unknown
    name: str = ""  # name of the variable at the address, "" unknown
    #: lower bound in seconds, from the scans that showed the wait; None unknown
    duration_s: float | None = None
    stack: int = 0  # id, 0 unknown
    type: str = ""  # type of the object by the functions of the stack, as "OpenMP lock"
    #: whether an idle rule says that the wait is for work; None: no rule applies
    idle: bool | None = None
    why: str = ""  # name of that rule


class LockUse(Struct, frozen=True, gc=False):
    """The use that a thread made of an object without an owner."""

    lock: int  # id
    #: semaphore: acquisitions in that life; condition, barrier: waits that returned
    acquisitions: int
    signals: int = 0  # semaphore: posts in that life; condition: signals and broadcasts
    #: semaphore: the life that these counts are of, as ``Lock.generation``
    life: int = 0
    #: semaphore: where the thread took the first of the units that it has not posted, as
    #: ``UnitTaker`` has it
    site: int = 0
    stack: int = 0
    took_more: bool = False


class UnitTaker(Struct, frozen=True, gc=False):
    """A thread that took units of a semaphore and did not post them."""

    tid: int
    units: int
    #: return address of the call that took the first of these units; 0: unknown
    site: int = 0
    stack: int = 0  # id of the stack of that call; 0: unknown, as without a wait for the unit
    #: The thread took further units in other calls before it posted the first one. A program may
    #: post units in any order. So the units that the thread has now may be of these calls.
    took_more: bool = False


class TakenUnits(Struct, frozen=True, gc=False):
    """The units of a semaphore that threads took and did not post; these are all its units."""

    all: int  # the initial value
    takers: tuple[UnitTaker, ...]  # living threads first, of these the most units first
    ended: int = 0  # units of threads that ended, and of which no more is known


class Held(Struct, frozen=True, gc=False):
    """A lock that a thread holds."""

    lock: int  # id
    site: int  # return address of the acquiring call
    duration_s: float | None  # seconds held; None: not known
    depth: int = 0  # recursive acquisitions beyond the first
    shared: bool = False
    is_lower_bound: bool = False  # ``duration_s``: the hold is not timed, see analysis/hold_bounds


class TimeSplit(Struct, frozen=True, gc=False):
    """The wall clock time of a thread in the last interval, as shares 0..1 that add up to 1.

    analysis/time_split.py says where overlapping times count.
    """

    cpu: float = 0.0  # on a CPU, with the time that the thread spins for a lock
    runnable: float = 0.0  # ready to run, without a CPU
    contended: float = 0.0  # asleep, in contention
    idle: float = 0.0  # asleep, in observed waits for work
    disk: float = 0.0  # asleep, for a block device
    other: float = 0.0  # asleep for another reason, stopped, or unknown
    #: Names of the shares that are not fully known; the missing time is part of ``other``.
    unknown: tuple[str, ...] = ()

    @staticmethod
    def mean(times: Sequence[TimeSplit]) -> TimeSplit | None:
        """Return the mean of ``times``, None of none."""
        if len(times) < 2:
            return times[0] if times else None
        count = len(times)
        return TimeSplit(
            cpu=sum([time.cpu for time in times]) / count,
            runnable=sum([time.runnable for time in times]) / count,
            contended=sum([time.contended for time in times]) / count,
            idle=sum([time.idle for time in times]) / count,
            disk=sum([time.disk for time in times]) / count,
            other=sum([time.other for time in times]) / count,
            unknown=tuple(dict.fromkeys([name for time in times for name in time.unknown])),
        )


class Switches(Struct, frozen=True, gc=False):
    """How often a thread lost its CPU or changed its CPU, since the thread began."""

    voluntary: int  # the thread went to sleep
    involuntary: int  # the kernel gave the CPU to another thread
    migrations: int | None  # None: the kernel does not count them


class PerfCounter(Struct, frozen=True, gc=False):
    """One event that the processor or the kernel counts for a thread."""

    name: str  # name of the event in perf-list(1)
    unit: str  # "s" for times, "" for counts
    total: float | None  # since the counting began; None: not counted
    per_s: float = 0.0  # per second, in the last interval; says nothing without a ``total``
    why: str = ""  # why the event is not counted, or what the figure leaves out


class PerfCounters(Struct, frozen=True, gc=False):
    """The counters of the followed thread."""

    duration_s: float  # seconds
    counters: tuple[PerfCounter, ...]


class ThreadActivity(Struct, frozen=True, gc=False):
    """The activity of a thread at the time of the scan, as the kernel shows it."""

    tid: int
    doing: ActivityState
    #: blocked: name of the system call; "" without a call, or if locktop may not see the call
    call: str = ""
    what: str = ""  # the call with its known arguments: "write(7 -> /var/lib/x/wal)"
    duration_s: float = 0.0  # blocked: seconds, from the scans that showed the call
    stack: int = 0  # id of the stack, 0 unknown
    #: 0: current stack; else the seconds since the thread slept with that stack
    stack_age_s: float = 0.0
    cpu: float | None = None  # running: share of the last interval on a CPU
    is_lower_bound: bool = False  # ``duration_s``: the call had begun before the first query


class Thread(Struct, frozen=True, gc=False):
    """One thread. Counters cover its life; ``*_share`` and rates cover the last interval.

    Samples show waits alone, so a sampled thread has None in ``acquisitions`` and ``contended``.
    """

    tid: int
    name: str
    alive: bool
    state: ThreadState
    waiting_for: Wait | None
    holds: tuple[Held, ...]
    wait_s: Mapping[Kind, float]  # seconds of waits by kind, with the wait that goes on
    cpu_s: float
    acquisitions: int | None
    contended: int | None
    #: Shares 0..1 of the last interval in waits. A finished wait counts by its kind, the current
    #: wait by its classification.
    wait_share: float = 0.0  # share in contention
    idle_share: float = 0.0  # share in all other waits
    cpu_share: float = 0.0  # share on a CPU
    #: Uses of the semaphores, conditions and barriers that a thread waits for; None: not all are
    #: known.
    uses: tuple[LockUse, ...] | None = ()
    #: Whether the thread signalled conditions, or posted semaphores that it had not acquired. False
    #: if no thread waits for such an object.
    signals: bool = False
    pid: int = 0  # process id of a peer process that shares locks; 0: the watched process
    #: None in the first scan and for a dead thread.
    time: TimeSplit | None = None
    #: Of queried threads (Source.follow), and of all threads in a scan that resolves names.
    switches: Switches | None = None
    counters: PerfCounters | None = None  # of the followed thread only
    #: Of queried threads without a wait in ``waiting_for``.
    now: ThreadActivity | None = None
    #: The waits in ``contended`` by length. None: there was none, or the source does not measure
    #: them.
    wait_histogram: KeptHistogram | None = None

    @property
    def wait_p50_s(self) -> float | None:
        """The median of the waits in ``contended``, in seconds; None if it is not known."""
        return percentile_s(self.wait_histogram, 50, None)

    @property
    def wait_p99_s(self) -> float | None:
        """The seconds that 99 of 100 of these waits did not exceed; None if not known."""
        return percentile_s(self.wait_histogram, 99, None)

    @property
    def stack(self) -> int:
        """Id of the stack of the current wait, else of the current activity; 0 unknown."""
        if self.waiting_for is not None:
            return self.waiting_for.stack
        return self.now.stack if self.now is not None else 0
