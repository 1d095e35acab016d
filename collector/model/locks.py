"""Locks: their counters, waits, holders, blame and rates."""

from __future__ import annotations

from msgspec import Struct

from locktop.collector.model.kinds import Kind
from locktop.collector.model.threads import ThreadActivity


class WaitStack(Struct, frozen=True, gc=False):
    """Where waits for one lock came from; an exact counter."""

    stack: int
    count: int
    wait_s: float
    idle: bool = False  # waits for work


class Blame(Struct, frozen=True, gc=False):
    """Wait time charged to a holder and where it took the lock."""

    tid: int  # 0: threads that ended; with a site of 0: nobody, or nobody that is known
    site: int  # return address of the acquiring call, 0 unknown
    wait_s: float
    through: int = 0  # id of the lock that the holder waited for itself meanwhile, 0: none

    @property
    def holder(self) -> tuple[int, int, int]:
        """Who it is charged to."""
        return self.tid, self.site, self.through

    @property
    def nameless(self) -> str:
        """What to call the holder where it is no thread that can be named, else ""."""
        if self.tid:
            return ""
        return "threads that ended" if self.site else "no holder known"


class LockRates(Struct, frozen=True, gc=False):
    """One lock in the last interval, per second of it."""

    acquisitions: float = 0.0
    contended: float = 0.0
    wait: float = 0.0  # seconds waited, by all threads together, per second
    hold: float = 0.0  # seconds held per second
    signals: float = 0.0
    unheld: float = 0.0  # of ``wait``, while nobody had it or nobody is known to


class Lock(Struct, frozen=True, gc=False):
    """One lock since the process started."""

    id: int
    address: int
    kind: Kind
    name: str  # given by the program, else data symbol, else where contended, else address
    acquisitions: int
    contended: int
    trylock_failed: int
    wait_s: float  # waits that are going on included
    wait_max_s: float
    hold_s: float  # exact where hold_timed == acquisitions, else scaled up
    hold_timed: int
    hold_max_s: float  # of the holds that were timed
    holders: tuple[int, ...]  # tids
    waiters: tuple[int, ...]  # tids, the longest wait first
    wait_stacks: tuple[WaitStack, ...]  # most wait first
    blame: tuple[Blame, ...] = ()
    signals: int = 0  # sem: posts; cond: signals and broadcasts; by threads of this process
    unheard: int = 0  # cond: of these, at least, those for which nobody waited
    destroyed: bool = False
    rates: LockRates = LockRates()
    recursive: bool = False  # its holder may take it again
    writers_first: bool = False  # an rwlock whose readers queue behind a writer that waits
    foreign_releases: bool = False  # released by threads that did not hold it: holders may be wrong
    generation: int = 0  # how often its address was initialised again
    first_value: int = -1  # sem: what it was initialised to, -1 unknown
    freed_at_exit: bool = False  # mutex: the kernel frees it when its owner ends (robust, PI)
    used_as_lock: bool = False  # sem: only threads that had got it have posted it, as far as known
    idle: bool = False  # all that is known of its waits is that they were for work
    idle_s: float = 0.0  # of wait_s, in waits for work
    wait_error_s: float = 0.0  # of wait_s where it was sampled: one standard deviation
    holder_activity: ThreadActivity | None = (
        None  # where others wait for it and it is known who has it
    )
    type: str = ""  # futex: what the functions of its waiters say it is, as "Rust Mutex"

    @property
    def counted_wait_s(self) -> float:
        """The seconds that count: waits in contention, or without any the waits for work."""
        return self.wait_s if self.idle else self.wait_s - self.idle_s
