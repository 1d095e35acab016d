"""Samples that were taken while threads held contended locks: these show what runs inside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

from locktop.collector.model import Snapshot

#: The name of the extension: the key of the profile in ``Snapshot.sections``.
NAME = "inside"

#: Samples in a second of a thread, unless the user wants more.
RATE = 99.0


class HolderSample(Struct, frozen=True, gc=False):
    """A moment at which the stack of a thread was taken, from outside."""

    tid: int
    time_ns: int  # by the clock of the spans that it is compared with
    stack: int  # id, 0 unknown
    on_cpu: bool  # False: the thread slept
    count: int = 1  # sampling periods that the moment stands for
    call: str = ""  # the system call in which the thread slept; "" unknown
    read_ns: int = 0  # the stack is of a moment from time_ns to here; 0: of time_ns


class HeldSpan(Struct, frozen=True, gc=False):
    """A time in which a thread held a lock. The end is not part of the span."""

    tid: int
    lock: int  # id
    begin_ns: int
    end_ns: int
    site: int  # return address of the call that took the lock, 0 unknown


class InsideStack(Struct, frozen=True, gc=False):
    """The samples inside a lock with one call site, one stack and one activity."""

    site: int  # return address of the call that took the lock, 0 unknown
    stack: int  # id, 0 unknown; the whole stack, also above the call site
    count: int  # samples
    on_cpu: bool  # False: the thread slept
    call: str = ""  # the system call in which the thread slept; "" unknown


class LockInside(Struct, frozen=True, gc=False):
    """The stacks of threads that held one lock."""

    samples: int
    on_cpu: int  # of the samples, those of threads that ran
    share: float  # held time as a share of the profile's time, above 1 if threads share the lock
    stacks: tuple[InsideStack, ...]  # the most samples first
    #: Shares of all threads' time that went into waits for the lock. Each is of an equal slice of
    #: the profile, or of its last minute. The earliest slice comes first.
    pressure: tuple[float, ...] = ()
    pressure_slice_s: float = 0.0  # seconds of a slice


class InsideProfile(Struct, frozen=True, gc=False):
    """How the samples inside locks were taken."""

    duration_s: float  # seconds since the profile began
    period_s: float  # seconds of a hold that one sample stands for
    samples: int  # all samples of threads that may hold a contended lock
    unjoined: int  # of these, the samples that no hold of a contended lock covers
    lost: int  # samples that found no room
    threads: int  # sampled now
    #: By lock id: what ran inside. Locks without a sample and without a wait are left out.
    locks: Annotated[Mapping[int, LockInside], Meta(max_length=1 << 20)] = {}


def profile_of(snapshot: Snapshot) -> InsideProfile | None:
    """Return the profile of a snapshot; None: no samples are taken."""
    profile: InsideProfile | None = snapshot.sections.get(NAME)
    return profile


def inside_of(snapshot: Snapshot, lock: int) -> LockInside | None:
    """Return what runs inside the lock with an id; None: nothing is known of it."""
    profile = profile_of(snapshot)
    return profile.locks.get(lock) if profile is not None else None
