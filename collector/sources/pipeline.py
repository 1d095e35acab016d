"""How one scan becomes one snapshot: an ordered list of stages, shared by both sources.

A source makes a ``Scan`` and runs the stages below in their order. Each stage fills in its part of
the scan's ``draft``. At the end the draft becomes a ``Snapshot``, once. The sources override the
methods in which they differ: preload/scan.py, sampling/scan.py.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import ClassVar, NamedTuple

from locktop.collector.analysis import (
    contention_patterns,
    guarded_initialisers,
    joins_under_locks,
    message_waits,
    probable_deadlocks,
    waiter_peers,
)
from locktop.collector.analysis.hold_bounds import HoldKey
from locktop.collector.analysis.recent_waits import RecentWaits
from locktop.collector.extension.discovery import extensions
from locktop.collector.extension.parts import Extension
from locktop.collector.model import Draft, Frame, Snapshot
from locktop.collector.render.words import patterns
from locktop.collector.sources.probe_set import Probes, StackBudgets
from locktop.collector.sources.probes import late_stacks
from locktop.collector.sources.probes.python_stacks import WaitKeys
from locktop.collector.sources.watched_process import WatchedProcess


class Stage(NamedTuple):
    """One step of a scan: a call of a method, and the reason for its place in the order."""

    run: Callable[[Scan], None]
    why: str


#: Stages that observe the target. A first scan with all names repeats them, if one reading is not
#: enough (``Scan.wants_another_reading``).
OBSERVE = (
    Stage(lambda scan: scan.read(), "one reading of the target: all that follows is made of it"),
    Stage(
        lambda scan: scan.build_threads(),
        "locks take their waiters and holders from the same reading",
    ),
    Stage(lambda scan: scan.build_locks(), "deadlocks need to know what locks can do"),
    Stage(lambda scan: scan.add_unobserved_waits(), "they may be for locks that the library knows"),
    Stage(
        lambda scan: scan.check_deadlocks(),
        "soon after the reading: a second one must show the same waits",
    ),
    Stage(
        lambda scan: scan.find_owners_elsewhere(),
        "the second reading of deadlocks must show the same holders",
    ),
    Stage(
        lambda scan: scan.find_lock_orders(),
        "goes by the locks' names as far as they are known; resolve_names repeats it",
    ),
    Stage(lambda scan: scan.read_events(), "counters never wait for single records"),
    Stage(
        lambda scan: scan.build_parts(),
        "before the stacks: requests the names of its functions with all others",
    ),
    Stage(
        lambda scan: scan.probe_followed_thread(),
        "before the stacks, for the thread's own is one of them",
    ),
    Stage(lambda scan: scan.add_stacks(), "all ids are known now, but for those of holders"),
    Stage(
        lambda scan: scan.merge_python_stacks(),
        "needs the native stacks; gives waits other stack ids",
    ),
    Stage(
        lambda scan: scan.name_threads(),
        "stacks show whether Python runs; no stage before needs these names",
    ),
    Stage(lambda scan: scan.apply_exit(), "only of a process that has ended: its threads are dead"),
    Stage(lambda scan: scan.resolve_names(), "the idle rules go by the names of functions"),
    Stage(
        lambda scan: scan.find_hang(),
        "goes by functions of Python; no idle rule applies to threads that hang",
    ),
    Stage(
        lambda scan: scan.leave_out_messages(), "goes by stacks; waits in a deadlock are never idle"
    ),
    Stage(
        lambda scan: scan.classify_waits(), "contention is what is left when idle waits are known"
    ),
    Stage(lambda scan: scan.find_wakers(), "the types of the futexes tell which are locks"),
    Stage(
        lambda scan: scan.find_semaphore_owners(),
        "needs to know which semaphores are used as locks",
    ),
    Stage(
        lambda scan: scan.find_unnamed_holders(),
        "needs names of functions, types of futexes, and to know which waits are idle",
    ),
    Stage(
        lambda scan: scan.bound_holds(),
        "needs the holders of semaphores; deadlocks and patterns say how long holds last",
    ),
    Stage(
        lambda scan: scan.find_possible_deadlocks(),
        "goes by names of functions, by holders of semaphores and by probable holders",
    ),
)
#: Stages that query the kernel about the observed threads, unless the process has ended.
PROBE = (
    Stage(
        lambda scan: scan.probe_holders(),
        "needs the contended locks and who holds them, semaphores too",
    ),
    Stage(
        lambda scan: scan.describe_unobserved_waits(), "after the holders: it may wait for names"
    ),
)
#: Stages that draw conclusions.
CONCLUDE = (
    Stage(
        lambda scan: scan.complete_parts(),
        "they may need locks, waits and holders; request names of their own",
    ),
    Stage(
        lambda scan: scan.add_recent_waits(),
        "needs the rates of the interval, and to know what is idle",
    ),
    Stage(
        lambda scan: scan.count_names_left(), "all names that the snapshot needs are requested now"
    ),
    Stage(
        lambda scan: scan.find_patterns(),
        "a pattern may go by what a holder does, and by names of functions",
    ),
    Stage(lambda scan: scan.run_extensions(), "they may read all that the scan showed"),
)

#: Upper bound of the further readings in a first scan with all names.
_MAX_MORE = 3
#: Seconds that a scan waits for names: one with all names, and that of a process that has ended.
NAMES_S, LAST_NAMES_S = 30.0, 1.0
#: Seconds between two samples of Python functions while a scan waits for names.
_SLICE_S = 0.05
_NAMES_LEFT = (
    "{left:,} names were not read in {patience:g} s: functions or source lines are missing"
)


class Scan(ABC):
    """One scan: the stages of both sources, with the methods in which the sources differ."""

    #: Seconds between two readings of a first scan with all names.
    pause_s: ClassVar[float] = 0.0
    #: Budgets of a scan for the screen, and of a scan with all names.
    budgets: ClassVar[StackBudgets]
    budgets_of_full_scan: ClassVar[StackBudgets]

    def __init__(self, watched: WatchedProcess, probes: Probes, resolve: bool) -> None:
        """Args:
        watched: the process.
        probes: the probes for its program.
        resolve: whether to wait for all names.
        """
        self.watched = watched
        self.probes = probes
        self.resolve = resolve
        self._names_end = 0.0  # time.monotonic(); the scan waits for names until then
        self.is_stopped = False  # by a signal or a debugger: then a long hold says nothing
        self.has_ended, self.read_at_s = False, 0.0  # when the threads were read, time.monotonic()
        #: By tid of a waiter for a guard of C++: the thread that certainly runs the initialiser.
        self.initialisers: Mapping[int, int] = {}
        self.draft: Draft
        self.stack_budgets = self.budgets_of_full_scan if resolve else self.budgets

    # ---- stages that differ between the sources ----

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

    def build_parts(self) -> None:
        """Let the parts of extensions read the memory of the target."""

    def complete_parts(self) -> None:
        """Let these parts take what is known by now."""

    def apply_exit(self) -> None:
        """Fill in how the process ended."""

    def add_unobserved_waits(self) -> None:
        """Fill in the waits that the source does not observe."""

    def find_wakers(self) -> None:
        """Fill in the holders of futexes that are locks, by who woke the waiters."""

    def find_semaphore_owners(self) -> None:
        """Fill in the owners of semaphores that the program uses as locks."""

    def describe_unobserved_waits(self) -> None:
        """Fill in the details of unobserved waits for unknown objects."""

    @abstractmethod
    def wait_keys(self) -> WaitKeys:
        """Return the numbers of this scan's waits, also of threads that sleep in system calls."""

    @abstractmethod
    def read_wait_keys_again(self) -> WaitKeys:
        """Return the numbers of the waits of this moment."""

    @abstractmethod
    def thread_lives(self) -> Mapping[int, int]:
        """Return by tid a number that no other thread with this tid has had."""

    @abstractmethod
    def rename_locks(self) -> None:
        """Fill in the names of locks that are known by now."""

    # ---- stages that both sources share ----

    def proved_holds(self) -> Mapping[HoldKey, float]:
        """Return how long some holds have lasted at least, in seconds, by the waits for them."""
        return {}

    def bound_holds(self) -> None:
        """Fill in how long the holds that are not timed have lasted at least."""
        if not self.has_ended:
            is_first, proved_s = self.watched.last is None, self.proved_holds()
            self.watched.hold_lengths.annotate(self.draft, self.read_at_s, is_first, proved_s)

    def find_owners_elsewhere(self) -> None:
        """Fill in the threads of other processes that hold locks in shared memory."""
        if not self.has_ended:
            self.watched.owners_elsewhere.annotate(self.draft)

    def find_hang(self) -> None:
        """Fill in whether all threads of the process wait for each other."""
        draft = self.draft
        if self.has_ended or self.is_stopped or draft.stopped:
            return
        waiters = self.probes.gil_holders.waiters(draft)
        draft.hang = self.watched.hang.probe(draft.threads, waiters)

    def find_unnamed_holders(self) -> None:
        """Fill in who keeps Python's GIL, and who probably holds other locks without a holder."""
        if self.has_ended or self.is_stopped:
            return
        gil = self.probes.gil_holders
        if has_holder := gil.find_deadlocks(self.draft, self.read_at_s, self.resolve):
            late_stacks.annotate(self, self.watched.tasks, self.probes.native_stacks)
        gil.describe_locks(self.draft)
        if has_holder:
            self.classify_waits()  # a wait with a holder is for a lock, also in a deadlock
        if self.probes.probable_holders.annotate(self.draft, self.resolve):
            self.classify_waits()  # a semaphore or a futex is a lock
        self.probes.python_holders.annotate(self.draft, self.resolve)
        self.add_stacks()  # the call sites in these threads

    def find_possible_deadlocks(self) -> None:
        """Add deadlocks that only functions show: C++ initialisers, and joins of Python."""
        draft = self.draft
        if self.has_ended:
            return
        self.initialisers = self.watched.initialisers.find(draft, self.probes.native_stacks)
        if self.initialisers:
            # A cycle over a known initialiser is as certain as one of mutexes.
            self.check_deadlocks()
            self.leave_out_messages()
            self.classify_waits()
        possible = (
            guarded_initialisers.find(draft)
            + joins_under_locks.find(draft)
            + probable_deadlocks.find(draft)
        )
        if possible:
            draft.deadlocks = (*draft.deadlocks, *possible)
            self.classify_waits()  # waits in a deadlock are never idle

    def probe_followed_thread(self) -> None:
        """Fill in activity and counters of the followed thread.

        A scan with all names does so for all threads.
        """
        if self.has_ended:
            return
        stacks = self.probes.native_stacks
        stacks.begin(self.stack_budgets.of_holders)
        self.watched.followed_thread.annotate(self.draft, self.resolve, stacks)

    def frames(self, stack: int) -> tuple[Frame, ...]:
        """Return the frames of a stack by its id; request the names that are missing."""
        return self.probes.python.frames(stack)

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
        """Fill in the known Python functions."""
        self.probes.python.merge(self.draft, self.wait_keys(), self.watched.last)
        if self.probes.python.learned:  # such a wait may be over by the next scan
            self.rename_locks()

    def name_threads(self) -> None:
        """Give the threads the names that Python has for them."""
        lives, names = self.thread_lives(), self.probes.thread_names
        if self.has_ended:
            names.apply(self.draft, lives)
        else:
            may_run_python = self.probes.python.runs_in(self.draft.stacks)
            names.annotate(self.draft, lives, may_run_python)

    def resolve_names(self) -> None:
        """Wait for names, and for names that follow from others (a lock's name from a stack's)."""
        if not self.resolve and not self.has_ended:
            return
        self.wait_for_names()
        if not self.has_ended:
            self.probes.python.merge_all(self.draft, self.wait_keys(), self.read_wait_keys_again)
            self.rename_locks()
            # The resolver reads a memory map again that became old: it may have a new library.
            if self.probes.resolver.count_left() and self.await_resolver():
                self.rename_locks()
        self.note(*self.probes.resolver.notes(), *self.probes.python.notes())

    def wait_for_names(self) -> None:
        """Wait for the names of functions, then refresh everything that contains names."""
        self.await_resolver()
        self.rename_locks()
        self.refresh_names()

    @property
    def _patience_s(self) -> float:
        return NAMES_S if self.resolve else LAST_NAMES_S

    def await_resolver(self) -> bool:
        """Wait until all names are read, or the patience ends; return whether all are read."""
        self._names_end = self._names_end or time.monotonic() + self._patience_s
        resolver = self.probes.resolver
        while not resolver.wait(max(0.0, min(self._names_end - time.monotonic(), _SLICE_S))):
            if time.monotonic() >= self._names_end or self.watched.hurried:
                return False
            if not self.has_ended:  # the time serves for samples, too
                self.probes.python.sample(self.draft, self.wait_keys(), self.watched.last)
        return True

    def refresh_names(self) -> None:
        """Fill in stacks and call sites anew, with the names that are known by now."""
        self.draft.stacks = {stack: self.frames(stack) for stack in sorted(self.draft.stacks)}
        site = self.probes.resolver.site
        self.draft.sites = {address: site(address) for address in sorted(self.draft.sites)}

    def run_extensions(self) -> None:
        """Let each extension add its section."""
        for extension in extensions():
            if extension.stage is not None:
                self.guard(extension, partial(extension.stage, self.draft))

    def guard(self, extension: Extension, run: Callable[[], bool | None]) -> bool | None:
        """Run a part of an extension. Its fault is a note, and then None is returned."""
        try:
            return run()
        except Exception as error:
            self.note(f"extension {extension.name}: {type(error).__name__}: {error}")
            return None

    def leave_out_messages(self) -> None:
        """Remove deadlocks over a wait that any thread can end with a message."""
        draft = self.draft
        if draft.deadlocks:
            draft.deadlocks = message_waits.leave_out(draft.deadlocks, draft.stacks)

    def classify_waits(self) -> None:
        """Decide which waits are idle and which are contention."""
        self.probes.classifier.annotate(self.draft)

    def probe_holders(self) -> None:
        """Fill in the activity of the holders of contended locks, or the waits of children."""
        self.probes.annotate_children(self.draft)
        holders, stacks = self.probes.holders, self.probes.native_stacks
        stacks.begin(self.stack_budgets.of_holders)
        holders.annotate(self.draft, self.resolve)
        peers = waiter_peers.to_query(self.draft)
        self.watched.followed_thread.also_queried = holders.in_python | peers
        holder_stacks = holders.stacks()  # requests their names
        if self.resolve:
            self.await_resolver()
            holder_stacks = holders.stacks()
        self.draft.stacks = {**self.draft.stacks, **holder_stacks}
        self.note(*holders.notes())

    def find_patterns(self) -> None:
        """Fill in the patterns of contention.

        Some waits are known to be idle only by the names of their functions. So a screen shows no
        pattern while names are left.
        """
        may_come = self.draft.names_left > 0 and not self.resolve and not self.has_ended
        if not self.is_stopped and not may_come:
            slept = partial(self.watched.hold_lengths.may_have_slept, read_at_s=self.read_at_s)
            findings = contention_patterns.find(self.draft, slept, self.watched.queues)
            self.draft.patterns = patterns.described(findings, self.draft.locks)

    def add_recent_waits(self) -> None:
        """Fill in the waiting of the last minute."""
        draft, now_s, watched = self.draft, time.monotonic(), self.watched
        interval_s = draft.interval_s
        if watched.last is None:  # the first scan of this program
            watched.recent_lock_waits, watched.recent_thread_waits = RecentWaits(), RecentWaits()
        watched.recent_lock_waits.add(
            now_s,
            interval_s,
            [(lock.id, lock.rates.wait * interval_s) for lock in draft.locks if not lock.idle],
        )
        watched.recent_thread_waits.add(
            now_s,
            interval_s,
            [(thread.tid, thread.wait_share * interval_s) for thread in draft.threads],
        )
        draft.recent_lock_waits = watched.recent_lock_waits.snapshot()
        draft.recent_thread_waits = watched.recent_thread_waits.snapshot()

    def count_names_left(self) -> None:
        """Fill in how many names are not read yet; a scan that waited for them says so."""
        has_waited = self.resolve or self.has_ended
        with_new = has_waited or self.watched.last is None
        self.draft.names_left = self.probes.resolver.count_left(with_new)
        if self.draft.names_left and has_waited:
            self.note(_NAMES_LEFT.format(left=self.draft.names_left, patience=self._patience_s))

    # ---- the whole scan ----

    @property
    def wants_another_reading(self) -> bool:
        """Whether a further reading can name a Python lock or show the use of a semaphore."""
        return self.probes.python.wants_another_scan

    def run(self) -> Snapshot:
        """Run the stages in their order, and return the snapshot.

        Raises:
            LocktopError: locktop cannot read the target any more.
            OSError: the process has ended, or locktop lacks descriptors (sampled source).
        """
        is_first = self.watched.last is None
        self.probes.resolver.set_reading(self.watched.reads_names)
        # The first picture of a screen comes before names, which take longer.
        is_urgent = is_first and not self.resolve and not self.has_ended
        with self.probes.resolver.pause_reading() if is_urgent else nullcontext():
            return self._run_all(is_first)

    def _run_all(self, is_first: bool) -> Snapshot:
        self._run(OBSERVE)
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
            stage.run(self)

    def note(self, *notes: str) -> None:
        """Add messages for the user, each once."""
        self.draft.notes = tuple(dict.fromkeys((*self.draft.notes, *notes)))
