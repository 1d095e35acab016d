"""Threads: what they wait for, what they hold, what they do, where their time went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from locktop.collector.model.kinds import ActivityState, Kind, ThreadState


class Wait(Struct, frozen=True, gc=False):
    """A wait that is going on."""

    lock: int  # id
    kind: Kind
    duration_s: float  # how long already, seconds
    holders: tuple[int, ...]  # tids, as far as known
    stack: int  # id of the waiter's stack, 0 unknown; of this wait alone from 2**32 on
    site: int  # return address of the waiting call
    seq: int  # differs for each wait of a thread
    timed: bool = False  # gives up by itself
    shared: bool = False  # wants an rwlock for reading
    holder_seen: int = 0  # tid that owned the lock when the wait began, 0 unknown
    pshared: bool = False  # another process may end it
    awaits: int = 0  # join: tid of the thread whose end is awaited, 0 unknown
    parties: int = 0  # barrier: how many it lets go at once
    idle: bool = False  # for work, not because somebody holds the lock: no contention
    is_lower_bound: bool = False  # for_s: it had begun already when it was seen first


class UnobservedWait(Struct, frozen=True, gc=False):
    """A wait in a futex call that the kernel shows and the library does not see: it is compiled
    into the program or inside the C library, or began before anything was watched."""

    tid: int
    address: int = 0  # of the futex, 0 unknown
    name: str = ""  # of the variable that it is, "" if none is known
    duration_s: float | None = None  # how long at least, as the looks saw it; None unknown
    stack: int = 0  # id, 0 unknown
    type: str = ""  # what its functions say is waited for, as "OpenMP lock"
    idle: bool | None = None  # for work, as a rule says of its functions; None: none does
    why: str = ""  # that rule


class Use(Struct, frozen=True, gc=False):
    """What a thread did at a lock that nobody owns."""

    lock: int  # id
    acquisitions: int  # sem: how often it got it; cond, barrier: waits that returned
    signals: int = 0  # sem: posts; cond: signals and broadcasts


class Held(Struct, frozen=True, gc=False):
    """A lock that a thread holds now."""

    lock: int  # id
    site: int  # return address of the acquiring call
    duration_s: float | None  # seconds held, None where this hold is not timed
    depth: int = 0  # recursive acquisitions beyond the first
    shared: bool = False


class TimeSplit(Struct, frozen=True, gc=False):
    """Where the wall clock of a thread went in the last interval: shares of it, 0..1, that add up
    to 1. analysis/time_split.py says what goes where two of them overlap."""

    cpu: float = 0.0  # on a CPU, spinning for a lock too
    runnable: float = 0.0  # wanted a CPU and had none
    contended: float = 0.0  # asleep, for a lock
    idle: float = 0.0  # asleep, for work: waits that the library sees
    disk: float = 0.0  # asleep, for a block device
    other: float = 0.0  # asleep for anything else, stopped, and what of the others is not known
    #: Those of the above of which not all is known: what is missing there lies in ``other``.
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
            unknown=tuple(dict.fromkeys(name for time in times for name in time.unknown)),
        )


class Switches(Struct, frozen=True, gc=False):
    """How often a thread lost its CPU, and moved to another one, since it began."""

    voluntary: int  # it went to sleep
    involuntary: int  # another one was put in its place
    migrations: int | None  # None where the kernel does not tell


class Counter(Struct, frozen=True, gc=False):
    """One event that the processor or the kernel counts for a thread."""

    name: str  # as perf-list(1) has it
    unit: str  # "s" for times, "" for counts
    total: float | None  # since counting began; None: not counted
    per_s: float = 0.0  # in the last interval
    why: str = ""  # why it is not counted, or what the figure leaves out


class Counters(Struct, frozen=True, gc=False):
    """Those of one thread, counted since it was asked for."""

    duration_s: float  # seconds
    counters: tuple[Counter, ...]


class ThreadActivity(Struct, frozen=True, gc=False):
    """What a thread does at this moment, as the kernel tells it."""

    tid: int
    doing: ActivityState
    call: str = ""  # blocked: the system call's name; "" where there is none, or it may not be seen
    what: str = ""  # the call with what it is about, as far as known: "write(7 -> /var/lib/x/wal)"
    duration_s: float = 0.0  # blocked: how long, as the looks saw it, seconds
    stack: int = 0  # id of its stack, 0 unknown
    stack_age_s: float = 0.0  # 0: it has that stack now; else it was seen asleep so, so long ago
    cpu: float | None = None  # running: share of the last interval that it was on a CPU
    is_lower_bound: bool = False  # for_s: it was in its call already when it was asked first


class Thread(Struct, frozen=True, gc=False):
    """One thread; the figures cover its life, ``*_share`` and rates the last interval."""

    tid: int
    name: str
    alive: bool
    state: ThreadState
    waiting_for: Wait | None
    holds: tuple[Held, ...]
    wait_s: Mapping[Kind, float]  # a wait that is going on included
    cpu_s: float
    acquisitions: int
    contended: int
    #: Of the last interval spent waiting, 0..1: waits that are over by their kind, the one that is
    #: going on by what it is.
    wait_share: float = 0.0  # in contention
    idle_share: float = 0.0  # in the other waits
    cpu_share: float = 0.0  # of the last interval on a CPU, 0..1
    #: At semaphores, conditions and barriers that somebody waits for now; None: not all is known.
    uses: tuple[Use, ...] | None = ()
    #: Whether, if there are such, it has signalled conditions or posted what it had not got.
    signals: bool = False
    pid: int = 0  # of another process that shares locks with the one looked at
    #: None in the first look and for a dead thread.
    time: TimeSplit | None = None
    #: Of threads that were asked about closely (Source.follow), and all in a look that resolves.
    switches: Switches | None = None
    counters: Counters | None = None  # of the thread that is followed
    #: Of those that were asked closely and wait for nothing that is told in ``waiting_for``.
    now: ThreadActivity | None = None

    @property
    def stack(self) -> int:
        """Id of the stack of the wait that it is in, or of what it does else; 0 unknown."""
        if self.waiting_for is not None:
            return self.waiting_for.stack
        return self.now.stack if self.now is not None else 0
