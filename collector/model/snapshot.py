"""A snapshot: everything that one scan of a process showed."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from locktop.collector.model.findings import Deadlock, Event, Mark, Misuse, OrderCycle, Pattern
from locktop.collector.model.locks import Lock
from locktop.collector.model.stacks import Frame
from locktop.collector.model.threads import Thread, UnobservedWait


class Process(Struct, frozen=True, gc=False):
    """The process looked at."""

    pid: int
    comm: str
    cmdline: tuple[str, ...]
    exe: str
    started_at: str  # ISO 8601, UTC
    cpu_share: float = 0.0  # cores used in the last interval
    rss_bytes: int = 0
    cpus: int = 0  # that it may run on, 0 unknown


class Snapshot(Struct, frozen=True, gc=False):
    """Everything one look showed.

    ``threads`` are in order of tid; ``locks`` by wait, then contended, then acquisitions, most
    first, the idle ones after the others. ``stacks`` maps the ids used above to frames, innermost
    first; frames whose names are still being looked up have an empty ``function``. ``sites`` maps
    single return addresses to the innermost frame that is no wrapper (symbols/wrappers.py).
    """

    taken_at: str  # ISO 8601, UTC, milliseconds
    host: str
    source: str  # "preload", "proc", "recording"
    duration_s: float  # seconds looked at
    interval_s: float  # since the snapshot before, what rates and shares refer to
    process: Process
    threads: tuple[Thread, ...]
    locks: tuple[Lock, ...]
    deadlocks: tuple[Deadlock, ...] = ()
    lock_order: tuple[OrderCycle, ...] = ()  # the surest first, of these the shortest
    lock_order_suppressed: int = 0  # left out, for a suppression file says that they cannot be
    #: Left out too, for it is not known whether their locks are the same ones throughout.
    lock_order_unproven: int = 0
    stacks: Mapping[int, tuple[Frame, ...]] = msgspec.field(default_factory=dict)
    sites: Mapping[int, Frame] = msgspec.field(default_factory=dict)
    events: tuple[Event, ...] = ()  # the newest, newest first, at most a few hundred
    marks: tuple[Mark, ...] = ()  # the newest, newest first, at most a hundred
    misuses: tuple[Misuse, ...] = ()  # the first one first
    patterns: tuple[Pattern, ...] = ()  # in the order of PatternName
    lost_events: int = 0  # since the process started, as far as known
    unobserved_waiters: tuple[int, ...] = ()  # tids that wait in a futex unknown to the source
    unobserved_waits: tuple[
        UnobservedWait, ...
    ] = ()  # of these what else is known: the first ones only
    locks_left_out: int = 0  # uncontended locks known but not in ``locks``
    ended: bool = False  # the process is gone; the figures are its last, its threads dead
    level: str = "contended"  # one of launch.LEVELS, "sampled"
    #: False: watching began later than the program; holds and waits from before are not known.
    complete: bool = True
    notes: tuple[str, ...] = ()  # one line each, what the user should know
    why: Mapping[int, str] = msgspec.field(
        default_factory=dict
    )  # by tid: the rule that told its wait

    @property
    def is_sampled(self) -> bool:
        """Whether it was taken from outside: then how often locks were taken and how long they were
        held is not known, and waits are estimates."""
        return self.source == "proc"

    @property
    def deadlocked(self) -> frozenset[int]:
        """The ids of the locks in a deadlock."""
        return frozenset(edge.waits_for for found in self.deadlocks for edge in found.cycle)
