"""Profiles that a program makes of its own code (locktop.h)."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from locktop.collector.model import Snapshot

#: The name of the extension: the key of the profiles in ``Snapshot.sections``.
NAME = "profiles"


class ProfileState(StrEnum):
    """Whether a profile that the program makes of itself runs, or why it does not."""

    STOPPED = "stopped"
    RUNNING = "running"
    UNLOADED = "unloaded"  # dlclose() removed code of a region
    TAKEN_OVER = "taken over"  # the program installed a handler for the profile's signal


class ProfileRegion(Struct, frozen=True, gc=False):
    """A range of code. Its buckets begin at ``start``."""

    start: int  # address
    size: int  # bytes
    module: str = ""  # path of the file; "": code made at run time, or too long a path
    offset: int = 0  # of the start in that file
    function: str = ""  # of the start; "": not known, or not known yet


class ProfileBucket(Struct, frozen=True, gc=False):
    """A bucket that has samples."""

    address: int  # of its first byte
    count: int


class SelfProfile(Struct, frozen=True, gc=False):
    """A profile. Each sample stands for ``interval`` of ``unit``.

    ``buckets`` are in the order of the regions. ``buckets_left_out`` is the number of further
    buckets, with fewer samples.
    """

    number: int  # differs among the profiles of a process at one time; from 1 on
    name: str  # given by the program, or ""
    source: str  # "timer", "task clock", ...
    unit: str  # "ns" or "events"
    interval: int
    state: ProfileState
    all_threads: bool
    bucket_size: int  # bytes
    regions: tuple[ProfileRegion, ...]
    buckets: tuple[ProfileBucket, ...]
    samples: int  # in all buckets
    elsewhere: int = 0  # samples of code outside the regions
    lost: int = 0  # samples whose place is not known
    threads: int = 0  # threads that are sampled now
    threads_left_out: int = 0  # threads that could not be sampled
    buckets_left_out: int = 0
    ran_s: float = 0.0  # time between starts and stops


def profiles_of(snapshot: Snapshot) -> tuple[SelfProfile, ...]:
    """Return the profiles of a snapshot, in the order of their numbers."""
    profiles: tuple[SelfProfile, ...] = snapshot.sections.get(NAME, ())
    return profiles
