"""Locks: their counters, waits, holders, blame and rates."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence, Set
from typing import TYPE_CHECKING

from msgspec import Struct

from locktop.collector.model.histograms import KeptHistogram, percentile_s
from locktop.collector.model.kinds import CONTENTION_KINDS, LIVES_KINDS, HolderEvidence, Kind
from locktop.collector.model.lock_figures import LockFigures
from locktop.collector.model.threads import LockUse, TakenUnits, ThreadActivity


class PythonShare(Struct, frozen=True, gc=False):
    """The part of the waits from a native stack that had certain Python functions, by samples.

    A sample meets a wait with a chance in proportion to its duration. So ``samples`` estimate
    shares of time, not of the number of waits.
    """

    stack: int  # with the Python functions; the native stack itself: the functions were not read
    samples: int  # how often a sample met such a wait
    waits: int  # how many waits these samples met


class WaitStack(Struct, frozen=True, gc=False):
    """The call stack of waits for one lock, as an exact counter."""

    stack: int
    count: int
    wait_s: float
    idle: bool = False  # waits for work
    #: By their Python functions, most samples first; (): no sample met such a wait in Python.
    python: tuple[PythonShare, ...] = ()


class WaitPart(Struct, frozen=True, gc=False):
    """A part of the waits from one native stack: all of them, or those of a Python stack."""

    stack: int
    wait_s: float  # an estimate if the waits are divided
    count: int | None  # waits that ended; None: samples tell nothing of this number


class ProbableHolder(Struct, frozen=True, gc=False):
    """A thread that probably holds a lock. No deadlock through such a thread is certain."""

    tid: int
    evidence: HolderEvidence
    site: int  # return address in the function that shows it; 0: none


class Blame(Struct, frozen=True, gc=False):
    """Wait time that is charged to a holder and to the call site where the holder took the lock."""

    tid: int  # thread id; 0: threads that ended, or with a site of 0 no known holder
    site: int  # return address of the acquiring call; 0: unknown
    wait_s: float
    through: int = 0  # id of the lock that the holder itself waited for meanwhile; 0: none

    @property
    def holder(self) -> tuple[int, int, int]:
        """The thread, call site and further lock that the time is charged to."""
        return self.tid, self.site, self.through

    @property
    def is_unheld(self) -> bool:
        """Whether no holder is known: a thread was woken and does not run yet, for example."""
        return not self.tid and not self.site

    @property
    def holder_label(self) -> str:
        """The text for a holder that is no thread with a name; "" for a thread with a name."""
        if self.tid:
            return ""
        return "threads that ended" if self.site else "no known holder"


class PackedBlame(Struct, array_like=True, frozen=True, gc=False):
    """The blame of one lock in rows.

    ``rows`` has 24 bytes for each row, the longest wait first: five little-endian numbers. These
    are 0 (u32), the index of the origin (u32), the thread id (u32), 0 (u32) and the ticks (u64).
    """

    #: the call site, and the id of the lock that the holder itself waited for, 0 none
    origins: tuple[tuple[int, int], ...]
    rows: bytes
    hz: float  # ticks of a second
    unheld_s: float  # as in LazyBlame
    behind_s: float


class LazyBlame(Sequence[Blame]):
    """The blame of one lock, the longest wait first, made at the first use of an element.

    A crowd of threads makes thousands of elements for each lock, and a scan needs only their sums.
    There is at least one element. Like a tuple, the blame never changes.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def sites(self) -> Set[int]:
        """The call sites of all elements."""

    @property
    @abstractmethod
    def further_locks(self) -> Set[int]:
        """The locks that holders waited for meanwhile, by id, and 0 for none."""

    @property
    @abstractmethod
    def unheld_s(self) -> float:
        """The seconds that are charged to no known holder."""

    @property
    @abstractmethod
    def behind_s(self) -> float:
        """The seconds that are charged to known holders."""

    @abstractmethod
    def packed(self) -> PackedBlame:
        """Return the elements in rows, which takes far less time than to make objects."""

    @abstractmethod
    def sum_with(self, others: Iterable[LazyBlame]) -> Sequence[Blame]:
        """Return the sums of this blame and of ``others`` by holder, the longest wait first."""

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (tuple, LazyBlame)) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))


# A saved snapshot has tuples.
if TYPE_CHECKING:
    LockBlame = tuple[Blame, ...] | LazyBlame
else:
    LockBlame = tuple[Blame, ...]


def blamed_sites(blame: Sequence[Blame]) -> Set[int]:
    """Return the call sites of a lock's blame."""
    return blame.sites if isinstance(blame, LazyBlame) else {charge.site for charge in blame}


def further_locks(blame: Sequence[Blame]) -> Set[int]:
    """Return the ids of the locks that the holders of a lock waited for meanwhile; 0 for none."""
    if isinstance(blame, LazyBlame):
        return blame.further_locks
    return {charge.through for charge in blame}


def unheld_s(blame: Sequence[Blame]) -> float:
    """Return the seconds of a lock's blame that are charged to no known holder."""
    if isinstance(blame, LazyBlame):
        return blame.unheld_s
    return sum([charge.wait_s for charge in blame if charge.is_unheld])


def behind_s(blame: Sequence[Blame]) -> float:
    """Return the seconds of a lock's blame that are charged to known holders."""
    if isinstance(blame, LazyBlame):
        return blame.behind_s
    return sum([charge.wait_s for charge in blame if not charge.is_unheld])


class LockRates(Struct, frozen=True, gc=False):
    """One lock in the last interval, per second of the interval. 0 without an interval.

    Samples show waits alone, so of a sampled lock only ``wait`` is measured.
    """

    acquisitions: float | None = 0.0
    contended: float | None = 0.0
    wait: float = 0.0  # seconds waited by all threads together, per second
    hold: float | None = 0.0  # seconds held per second
    signals: float | None = 0.0
    #: the part of ``wait`` in which no thread is known to have held the lock
    unheld: float | None = 0.0


#: Rates of a lock of which only the waits are measured.
WAITS_ALONE = LockRates(acquisitions=None, contended=None, hold=None, signals=None, unheld=None)


#: The name of a lock of the dynamic loader begins so.
LOADER_LOCK = "loader's lock"
#: The name of Python's global interpreter lock.
GIL = "GIL of Python"
#: The name of a semaphore at which a thread waits while all threads without a GIL are stopped.
PAUSE = "pause of Python"


class Lock(LockFigures, frozen=True, gc=False):
    """One lock. All counters cover the time since the process started.

    Of a sampled lock, ``contended`` counts the waits that samples showed.
    """

    id: int
    address: int
    kind: Kind
    #: given by the program, else the data symbol, else the contended function, else the address
    name: str
    wait_max_s: float
    hold_max_s: float | None  # seconds, of the timed holds; None: not measured
    holders: tuple[int, ...]  # tids
    waiters: tuple[int, ...]  # thread ids, the longest wait first
    wait_stacks: tuple[WaitStack, ...]  # the longest total wait first
    blame: LockBlame = ()
    destroyed: bool = False
    rates: LockRates = LockRates()
    recursive: bool = False  # its holder may acquire it again
    writers_first: bool = False  # rwlock: readers queue behind a waiting writer
    #: a thread that did not hold the lock released it: holders may be wrong
    foreign_releases: bool = False
    #: semaphore: acquisitions and posts since it was initialised, by ended threads too
    life_acquisitions: int | None = None
    life_signals: int | None = None
    generation: int = 0  # how often a lock is known to be initialised again at the address
    first_value: int | None = None  # semaphore: the initial value
    #: semaphore that a forked child inherited as a lock: posts by threads of the parent (up to 16).
    #: 0: not known, or the program uses the semaphore in another way
    parent_posts: int = 0
    #: mutex: the kernel frees it when its owner ends (robust, priority inheritance)
    freed_at_exit: bool = False
    #: semaphore: as far as known, only threads that acquired it posted it
    used_as_lock: bool = False
    #: semaphore: who took its units; None: not all units are taken, or it is not known
    taken_units: TakenUnits | None = None
    #: reader-writer lock without the library: how many threads have it to read. Their ids are not
    #: known, so they are no ``holders``. 0: none, or not known
    readers: int = 0
    idle: bool = False  # all known waits were for work
    wait_error_s: float = 0.0  # sampled: one standard deviation of ``wait_s``, in seconds
    holder_activity: ThreadActivity | None = (
        None  # activity of a holder, if threads wait and a holder is known
    )
    wait_max_is_bound: bool = False  # ``wait_max_s`` is an upper bound: of a part of the time
    #: ``wait_max_s`` is a lower bound: of a sampled lock, whose waits have unknown begins and ends
    wait_max_is_lower_bound: bool = False
    type: str = ""  # futex: the type by the functions of its waiters, as "Rust Mutex"
    #: The waits in ``contended`` and the holds in ``hold_timed`` by length. None: there was none,
    #: or the source does not measure them.
    wait_histogram: KeptHistogram | None = None
    hold_histogram: KeptHistogram | None = None
    #: threads wait, no holder is known, and these probably hold the lock
    holders_probable: tuple[ProbableHolder, ...] = ()

    @property
    def is_of_loader(self) -> bool:
        """Whether the dynamic loader has made the lock, which programs only take by its calls."""
        return self.name.startswith(LOADER_LOCK)

    @property
    def counted_wait_s(self) -> float:
        """The seconds that count: waits in contention, or without any the waits for work."""
        return self.wait_s if self.idle else self.wait_s - self.idle_s

    @property
    def wait_p50_s(self) -> float | None:
        """The median of the waits in ``contended``, in seconds; None if it is not known."""
        return percentile_s(self.wait_histogram, 50, self.wait_max_s)

    @property
    def wait_p99_s(self) -> float | None:
        """The seconds that 99 of 100 of these waits did not exceed; None if not known."""
        return percentile_s(self.wait_histogram, 99, self.wait_max_s)

    @property
    def hold_p50_s(self) -> float | None:
        """The median of the holds in ``hold_timed``, in seconds; None if it is not known."""
        return percentile_s(self.hold_histogram, 50, self.hold_max_s)

    @property
    def hold_p99_s(self) -> float | None:
        """The seconds that 99 of 100 of these holds did not exceed; None if not known."""
        return percentile_s(self.hold_histogram, 99, self.hold_max_s)

    def is_of_this_life(self, use: LockUse) -> bool:
        """Return whether a use is of the present life of the lock. An address may have had other
        semaphores before."""
        return self.kind not in LIVES_KINDS or use.life == self.generation

    @property
    def signals_in_life(self) -> int | None:
        """The signals that the uses of this life add up to, those of ended threads included."""
        return self.life_signals if self.kind in LIVES_KINDS else self.signals

    @property
    def unheld_wait_s(self) -> float | None:
        """The seconds of ``wait_s`` with no known holder, as while a woken thread wants a CPU.

        None if holders are not charged: of a sampled lock, or of a kind without holders.
        """
        if self.acquisitions is None:
            return None
        if self.kind not in CONTENTION_KINDS and not self.blame:
            return None
        if not self.blame:
            return None if self.wait_s else 0.0
        return unheld_s(self.blame)

    @property
    def units_out(self) -> int | None:
        """Semaphore: the units that threads acquired and did not post, those that ended included.

        None if acquisitions or posts were not measured.
        """
        if self.life_acquisitions is None or self.life_signals is None:
            return None
        return self.life_acquisitions - self.life_signals
