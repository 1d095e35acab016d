"""How one scan becomes one snapshot: an ordered list of stages, shared by both sources.

A source makes a ``Scan`` and runs the stages below, in their order. Each stage fills its part of
the scan's ``draft``. The draft becomes a ``Snapshot`` at the end, once. What differs between the
sources is a method of their own: preload/scan.py, sampling/scan.py.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from locktop.collector.analysis import contention_patterns
from locktop.collector.analysis.idle.classifier import Classifier
from locktop.collector.format import patterns
from locktop.collector.model import Draft, Frame, Snapshot
from locktop.collector.sources.probes.holder_activity import Holders
from locktop.collector.sources.probes.native_stacks import NativeStacks
from locktop.collector.sources.probes.python_stacks import PythonStacks, Waits
from locktop.collector.sources.watched_process import WatchedProcess
from locktop.collector.symbols.resolver import Resolver


class Stage(NamedTuple):
    """One step of a scan: a method of ``Scan``, and why it has this place in the order."""

    method: str
    why: str


#: What is observed. A first scan that is to know all names runs these again where one reading is
#: not enough (``Scan.wants_another_reading``).
OBSERVE = (
    Stage("read", "one reading of the target: all that follows is made of it"),
    Stage("build_threads", "locks take their waiters and holders from the same reading"),
    Stage("build_locks", "deadlocks need to know what locks can do"),
    Stage("check_deadlocks", "soon after the reading: a second one must show the same waits"),
    Stage("find_lock_orders", "needs the locks' names, for classes"),
    Stage("read_events", "counters never wait for single records"),
    Stage("ask_followed_thread", "before the stacks, for the thread's own is one of them"),
    Stage("add_stacks", "all ids are known now, but for those of holders"),
    Stage("merge_python_stacks", "needs the native stacks; gives waits other stack ids"),
    Stage("apply_exit", "only of a process that has ended: its threads are dead"),
    Stage("add_unobserved_waiters", "needs the states of all threads"),
    Stage("resolve_names", "the idle rules go by the names of functions"),
    Stage("classify_waits", "contention is what is left when idle waits are known"),
    Stage("find_semaphore_owners", "needs to know which semaphores are used as locks"),
)
#: What is asked of the kernel about what was observed; not of a process that has ended.
PROBE = (
    Stage("ask_holders", "needs the contended locks and who holds them, semaphores too"),
    Stage("ask_unobserved_waits", "after the holders: their time for stacks is their own"),
)
#: What follows from all of it.
CONCLUDE = (Stage("find_patterns", "a pattern may go by what a holder does"),)

#: A first scan that is to know all names is repeated at most so often, and after so long.
_MAX_MORE = 3
#: Seconds for names: where all are wanted, and of a process that has ended.
_NAMES_S, _LAST_NAMES_S = 30.0, 1.0


@dataclass(frozen=True, slots=True)
class Probes:
    """What both sources ask of the program that the process executes now."""

    resolver: Resolver
    native_stacks: NativeStacks
    python: PythonStacks
    holders: Holders
    classifier: Classifier


class StackTimes(NamedTuple):
    """Seconds for call stacks that are new in a scan; later scans take the others."""

    of_waits: float
    of_new_waits: float  # waits that began after the scan before: most are over soon
    of_holders: float
    of_unobserved_waits: float


class Scan(ABC):
    """One scan under way: what both sources do alike, and what each does in its own way."""

    #: Seconds between two readings of a first scan that is to know all names.
    pause_s: ClassVar[float] = 0.0
    #: Budgets of a scan that is drawn soon, and of one that is to know all names.
    times: ClassVar[StackTimes]
    times_of_all: ClassVar[StackTimes]

    def __init__(self, watched: WatchedProcess, probes: Probes, resolve: bool) -> None:
        """Args:
        watched: the process.
        probes: what is asked of its program.
        resolve: wait for all names.
        """
        self.watched = watched
        self.probes = probes
        self.resolve = resolve
        self.is_stopped = False  # by a signal or a debugger: nobody holds a lock for long
        self.has_ended = False
        self.draft: Draft
        self.stack_times = self.times_of_all if resolve else self.times

    # ---- stages that each source has in its own way ----

    @abstractmethod
    def read(self) -> None:
        """Read the target, and begin the draft."""

    @abstractmethod
    def build_threads(self) -> None:
        """Fill in the threads."""

    @abstractmethod
    def build_locks(self) -> None:
        """Fill in the locks."""

    @abstractmethod
    def check_deadlocks(self) -> None:
        """Fill in the deadlocks that two readings show."""

    def find_lock_orders(self) -> None:
        """Fill in potential deadlocks."""

    def read_events(self) -> None:
        """Fill in single waits, marks and misuses."""

    def apply_exit(self) -> None:
        """Fill in how the process ended."""

    def add_unobserved_waiters(self) -> None:
        """Fill in the threads whose waits the source does not observe."""

    def find_semaphore_owners(self) -> None:
        """Fill in who has a semaphore that is used as a lock."""

    def ask_unobserved_waits(self) -> None:
        """Ask what is known of the waits that the source does not observe."""

    @abstractmethod
    def waits_now(self) -> Waits:
        """Return the waits of this scan by number, also of threads that sleep in system calls."""

    @abstractmethod
    def read_waits_again(self) -> Waits:
        """Return the same as it is at this moment."""

    @abstractmethod
    def rename_locks(self) -> None:
        """Fill in the names of locks that are known by now."""

    # ---- stages that both do alike ----

    def ask_followed_thread(self) -> None:
        """Fill in what the thread in the details does, with its counters; with names, all do."""
        if self.has_ended:
            return
        stacks = self.probes.native_stacks
        stacks.begin(self.stack_times.of_holders)
        self.watched.followed_thread.annotate(self.draft, self.resolve, stacks)

    def frames(self, stack: int) -> tuple[Frame, ...]:
        """Return the frames of a stack, by its id, as far as they are named; ask for the rest."""
        return self.probes.python.of(stack)

    def add_stacks(self) -> None:
        """Fill in the frames of all stacks and call sites that the draft refers to."""
        stacks, sites = self.draft.stacks, self.draft.sites
        missing = sorted(self.draft.stack_ids() - stacks.keys())
        if missing:
            self.draft.stacks = {**stacks, **{stack: self.frames(stack) for stack in missing}}
        sites_missing = sorted(self.draft.site_ids() - sites.keys())
        if sites_missing:
            site = self.probes.resolver.site
            self.draft.sites = {**sites, **{address: site(address) for address in sites_missing}}

    def merge_python_stacks(self) -> None:
        """Fill in Python's functions where they are known."""
        self.probes.python.merge(self.draft, self.waits_now())
        if self.probes.python.learned:  # of a wait that may be over by the next scan
            self.rename_locks()

    def resolve_names(self) -> None:
        """Wait for names, and for those that only follow from them (a lock's from a stack's)."""
        if not self.resolve and not self.has_ended:
            return
        self.wait_for_names(_NAMES_S if self.resolve else _LAST_NAMES_S)
        if not self.has_ended:
            self.probes.python.merge_all(self.draft, self.waits_now(), self.read_waits_again)
            self.rename_locks()
        self.note(*self.probes.resolver.notes(), *self.probes.python.notes())

    def wait_for_names(self, patience_s: float) -> None:
        """Wait for the names of functions, then fill in all that goes by them."""
        self.probes.resolver.wait(patience_s)
        self.refresh_names()

    def refresh_names(self) -> None:
        """Fill in stacks, call sites and locks anew, with the names that are known by now."""
        self.rename_locks()
        self.draft.stacks = {stack: self.frames(stack) for stack in sorted(self.draft.stacks)}
        site = self.probes.resolver.site
        self.draft.sites = {address: site(address) for address in sorted(self.draft.sites)}

    def classify_waits(self) -> None:
        """Decide which waits are idle and which are contention."""
        self.probes.classifier.annotate(self.draft)

    def ask_holders(self) -> None:
        """Fill in what the holders of contended locks do now."""
        holders, stacks = self.probes.holders, self.probes.native_stacks
        stacks.begin(self.stack_times.of_holders)
        holders.annotate(self.draft, self.resolve)
        self.watched.followed_thread.beside = holders.in_python
        self.add_stacks()
        if self.resolve:
            self.probes.resolver.wait(_NAMES_S)
            self.draft.stacks = {**self.draft.stacks, **holders.stacks()}
        self.note(*holders.notes())

    def find_patterns(self) -> None:
        """Fill in the shapes of contention that have a name."""
        if not self.is_stopped and not self.draft.is_sampled:
            self.draft.patterns = patterns.described(contention_patterns.find(self.draft))

    # ---- the whole ----

    @property
    def wants_another_reading(self) -> bool:
        """Whether a further reading tells more: of a Python lock, or of a semaphore's use."""
        return self.probes.python.asks_for_another_scan

    def run(self) -> Snapshot:
        """Run the stages in their order and return the snapshot.

        Raises:
            LocktopError: the target cannot be read any more.
            OSError: the process has ended, or locktop lacks descriptors (sampled source).
        """
        self._run(OBSERVE)
        is_first = self.watched.last is None
        for _ in range(_MAX_MORE if self.resolve and is_first else 0):
            if self.has_ended or self.watched.hurried or not self.wants_another_reading:
                break
            time.sleep(self.pause_s)
            self._run(OBSERVE)
        if not self.has_ended:
            self._run(PROBE)
        self._run(CONCLUDE)
        return self.draft.snapshot()

    def _run(self, stages: tuple[Stage, ...]) -> None:
        for stage in stages:
            run: Callable[[], None] = getattr(self, stage.method)
            run()

    def note(self, *notes: str) -> None:
        """Add lines to what the user should know, each once."""
        self.draft.notes = tuple(dict.fromkeys((*self.draft.notes, *notes)))


def waits_of(*parts: Mapping[int, tuple[int, int]]) -> Waits:
    """Return several tables of waits as one; the last one counts."""
    merged: dict[int, tuple[int, int]] = {}
    for part in parts:
        merged.update(part)
    return merged
