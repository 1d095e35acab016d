"""A snapshot: everything that one scan of a process showed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from locktop.collector.model.findings import (
    Deadlock,
    Event,
    Hang,
    Mark,
    Misuse,
    OrderCycle,
    OrderEdge,
    Pattern,
)
from locktop.collector.model.locks import Lock, blamed_sites
from locktop.collector.model.stacks import Frame
from locktop.collector.model.threads import (
    AwaitedChild,
    ChildWaits,
    Thread,
    ThreadElsewhere,
    UnitTaker,
    UnobservedWait,
)

#: A bound for readers of a stranger's snapshot: a map takes many times the bytes that it came in.
_FEW = Meta(max_length=1 << 20)
#: Far more frames of one stack than are ever recorded.
_DEEPEST = Meta(max_length=4096)


class Process(Struct, frozen=True, gc=False):
    """The watched process."""

    pid: int
    comm: str
    cmdline: tuple[str, ...]
    exe: str
    started_at: str  # ISO 8601, UTC; "" unknown
    cpu_share: float = 0.0  # CPUs used in the last interval, 1.0 is one CPU
    rss_bytes: int = 0  # 0: unknown
    cpus: int = 0  # number of CPUs that the process may use; 0: unknown
    #: When the counters began, ISO 8601, UTC; "" unknown. Each exec begins them anew.
    counted_since: str = ""


class Contents(Struct):
    """The fields of a snapshot, finished or not.

    ``threads`` are in order of tid. ``locks`` are sorted by wait, then contended, then
    acquisitions, most first; idle locks come last. ``stacks`` maps each used stack id to its
    frames, innermost first. A frame has an empty ``function`` while the resolver works on its name.
    ``sites`` maps return addresses to the innermost frame that is no wrapper (model/frames.py).
    """

    taken_at: str  # ISO 8601, UTC, milliseconds
    host: str
    source: str  # "preload", "proc", "core"; "recording" in a document that comes from a recording
    duration_s: float  # seconds observed
    interval_s: float  # seconds since the last snapshot; rates and shares refer to this interval
    process: Process
    threads: tuple[Thread, ...]
    locks: tuple[Lock, ...]
    deadlocks: tuple[Deadlock, ...] = ()
    hang: Hang | None = None  # of the whole process; None: a thread may go on, or it is not known
    lock_order: tuple[OrderCycle, ...] = ()  # the highest confidence first, then the shortest cycle
    lock_order_suppressed: int = 0  # number of cycles that a suppression file excludes
    #: Number of cycles left out because the identity of their locks over time is unknown.
    lock_order_unproven: int = 0
    lock_orders_left_out: bool = False  # some orders of locks were not recorded
    lock_order_search_cut: bool = False  # the search ended at a limit, perhaps before a cycle
    stacks: Annotated[Mapping[int, Annotated[tuple[Frame, ...], _DEEPEST]], _FEW] = msgspec.field(
        default_factory=dict
    )
    sites: Annotated[Mapping[int, Frame], _FEW] = msgspec.field(default_factory=dict)
    events: tuple[Event, ...] = ()  # a few hundred at most, newest first
    marks: tuple[Mark, ...] = ()  # a hundred at most, newest first
    misuses: tuple[Misuse, ...] = ()  # oldest first
    patterns: tuple[Pattern, ...] = ()  # in the order of PatternName
    lost_events: int = 0  # known losses since the process started
    #: ids of threads that wait in a futex unknown to the source
    unobserved_waiters: tuple[int, ...] = ()
    #: Details of the first of the ``unobserved_waiters``.
    unobserved_waits: tuple[UnobservedWait, ...] = ()
    #: Holders of locks in shared memory that are threads of other processes, in order of tid.
    threads_elsewhere: tuple[ThreadElsewhere, ...] = ()
    #: Children with waits, the longest first, if the process itself has none.
    waiting_children: tuple[ChildWaits, ...] = ()
    #: The child for which the process itself waits, if none of its threads waits for a lock.
    awaited_child: AwaitedChild | None = None
    locks_left_out: int = 0  # known uncontended locks that are not in ``locks``
    names_left: int = 0  # names that are still being read, or were not read in time
    #: Libraries that the program is known to have unloaded: their addresses may have other code.
    unloads: int = 0
    ended: bool = False  # the process has ended: the figures are final, all threads are dead
    stopped: bool = False  # a signal or a debugger has stopped the process
    level: str = "contended"  # one of levels.NAMES, "sampled"
    #: False: watching began after the program did. Earlier holds and waits are unknown.
    complete: bool = True
    notes: tuple[str, ...] = ()  # messages for the user, one line each
    #: The counters are those of a session of so many seconds; None: since the process started.
    session_s: float | None = None
    #: By tid: the idle rule that classified the thread's wait.
    why: Annotated[Mapping[int, str], _FEW] = msgspec.field(default_factory=dict)
    #: By lock id, and by tid: seconds waited in contention in twelve parts of five seconds each.
    #: The oldest part is first. Locks and threads without a wait are left out.
    recent_lock_waits: Annotated[Mapping[int, tuple[float, ...]], _FEW] = msgspec.field(
        default_factory=dict
    )
    recent_thread_waits: Annotated[Mapping[int, tuple[float, ...]], _FEW] = msgspec.field(
        default_factory=dict
    )
    #: The parts of extensions by their names. SnapshotSection has their types (extension/parts.py).
    sections: Mapping[str, Any] = msgspec.field(default_factory=dict)

    @property
    def is_sampled(self) -> bool:
        """Whether the process was sampled from /proc.

        Then acquisitions and hold times are unknown, and wait times are estimates.
        """
        # A document of a recorded snapshot has another source; its level tells the same.
        return self.source in ("proc", "core") or (
            self.source == "recording" and self.level == "sampled"
        )

    @property
    def is_of_core(self) -> bool:
        """Whether a core dump has the process: there is no time, and nothing goes on."""
        return self.source == "core"

    @property
    def is_over(self) -> bool:
        """Whether nobody can act on the process any more: it has ended, or a core has it."""
        return self.ended or self.is_of_core

    @property
    def deadlocked(self) -> frozenset[int]:
        """The ids of the locks in a deadlock."""
        return frozenset(edge.waits_for for deadlock in self.deadlocks for edge in deadlock.cycle)

    def stack_ids(self) -> set[int]:
        """Return the ids of all stacks that the contents refer to, but for those of sections."""
        ids = {
            wait.stack if (wait := thread.waiting_for) is not None else thread.stack
            for thread in self.threads
        }
        entries = [entry for lock in self.locks for entry in lock.wait_stacks]
        ids.update([entry.stack for entry in entries])
        ids.update(share.stack for entry in entries for share in entry.python)
        ids.update(
            lock.holder_activity.stack for lock in self.locks if lock.holder_activity is not None
        )
        ids.update(event.stack for event in self.events)
        ids.update(edge.stack for deadlock in self.deadlocks for edge in deadlock.cycle)
        ids.update(misuse.stack for misuse in self.misuses)
        ids.update(edge.stack for edge in self._order_edges())
        ids.update(wait.stack for wait in self.unobserved_waits)
        ids.update(taker.stack for taker in self._unit_takers())
        ids.discard(0)
        return ids

    def site_ids(self) -> set[int]:
        """Return the call sites (return addresses) that the contents but for sections refer to."""
        sites = {held.site for thread in self.threads for held in thread.holds}
        sites.update(thread.waiting_for.site for thread in self.threads if thread.waiting_for)
        sites.update(*[blamed_sites(lock.blame) for lock in self.locks if lock.blame])
        sites.update(event.site for event in self.events)
        sites.update(edge.site for deadlock in self.deadlocks for edge in deadlock.cycle)
        sites.update(edge.site for edge in self._order_edges())
        sites.update(taker.site for taker in self._unit_takers())
        sites.update(holder.site for lock in self.locks for holder in lock.holders_probable)
        sites.discard(0)
        return sites

    def _unit_takers(self) -> Iterator[UnitTaker]:
        for lock in self.locks:
            if lock.taken_units is not None:
                yield from lock.taken_units.takers

    def _order_edges(self) -> Iterator[OrderEdge]:
        for cycle in self.lock_order:
            yield from cycle.edges
            for way in cycle.ways:
                yield from way.edges


class Snapshot(Contents, frozen=True, gc=False):  # type: ignore[misc]  # frozen, its base is not
    """Everything that one scan showed. A snapshot never changes and may cross threads."""

    def draft(self) -> Draft:
        """Return a draft with the same contents, for a snapshot that is to differ."""
        return Draft(**{name: getattr(self, name) for name in self.__struct_fields__})


class Draft(Contents):
    """A snapshot under construction: each stage of a scan fills in its part."""

    #: For the stages alone: ids of the semaphores for which several threads wait at once, as the
    #: semaphore's memory says. The scan itself reads one thread after the other.
    crowded: frozenset[int] = frozenset()

    def snapshot(self) -> Snapshot:
        """Return the finished snapshot."""
        return Snapshot(**{name: getattr(self, name) for name in Snapshot.__struct_fields__})
