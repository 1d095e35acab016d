"""Reads the profiles that a program makes of its own code from its shared memory."""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from locktop.collector.extensions.profiles import layout
from locktop.collector.extensions.profiles.model import (
    ProfileBucket,
    ProfileRegion,
    ProfileState,
    SelfProfile,
)
from locktop.collector.native import ffi, lib
from locktop.collector.sanitize import clean
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.segment import GrowingArray, SharedMemory

#: Buckets of one profile in a snapshot. Those with the fewest samples are left out first.
MAX_BUCKETS = 65_536
#: Buckets of all profiles together. Damaged profiles must not take all memory.
MAX_ALL_BUCKETS = 1 << 20
_STATES = {
    lib.LT_PROFILE_STOPPED: ProfileState.STOPPED,
    lib.LT_PROFILE_RUNNING: ProfileState.RUNNING,
    lib.LT_PROFILE_UNLOADED: ProfileState.UNLOADED,
    lib.LT_PROFILE_TAKEN_OVER: ProfileState.TAKEN_OVER,
}
#: By enum lt_profile_source: the name of the source, and the unit of its interval.
_SOURCES = {
    lib.LT_SOURCE_TIMER: ("timer", "ns"),
    lib.LT_SOURCE_TASK_CLOCK: ("task clock", "ns"),
    lib.LT_SOURCE_CONTEXT_SWITCHES: ("context switches", "events"),
    lib.LT_SOURCE_PAGE_FAULTS: ("page faults", "events"),
    lib.LT_SOURCE_CYCLES: ("cycles", "events"),
    lib.LT_SOURCE_INSTRUCTIONS: ("instructions", "events"),
    lib.LT_SOURCE_BRANCHES: ("branch instructions", "events"),
    lib.LT_SOURCE_BRANCH_MISSES: ("branch misses", "events"),
    lib.LT_SOURCE_CACHE_MISSES: ("cache misses", "events"),
}
_END_OF_ADDRESSES = 1 << 64


class _Buckets(NamedTuple):
    picked: tuple[ProfileBucket, ...]
    left_out: int


class _CopiedBuckets(NamedTuple):
    """The buckets of a profile, and the figures of the profile that tell when they change."""

    key: tuple[int, int, int, int]  # seq, samples, offset of the counts, buckets at most
    buckets: _Buckets


class ProfileTable:
    """The profiles of one file. The counts of a profile are read again when it has new samples."""

    def __init__(self, memory: SharedMemory, clock: Clock) -> None:
        self._memory = memory
        self._clock = clock
        self._entries = GrowingArray(memory, layout.PROFILES_AT, layout.PROFILE.size)
        self._copies: dict[int, _CopiedBuckets] = {}

    def read(self, now: int) -> tuple[SelfProfile, ...]:
        """Return the profiles that exist now, in the order of their numbers.

        Args:
            now: reading of the target's clock, ticks.

        Raises:
            LocktopError: the file is damaged.
        """
        self._entries.refresh()
        if self._entries.count > lib.LT_PROFILES:
            raise self._memory.broken(f"{self._entries.count} profiles")
        if not self._entries.count:
            return ()
        first, second = bytes(self._entries.copy()), bytes(self._entries.copy())
        profiles: list[SelfProfile] = []
        room = self._memory.max_bytes  # no two profiles have the same counts
        for index in range(self._entries.count):
            offset = index * layout.PROFILE.size
            entry, again = (
                layout.PROFILE.unpack(first, offset),
                layout.PROFILE.unpack(second, offset),
            )
            if entry.seq != again.seq or entry.seq & 1 or entry.state not in _STATES:
                continue
            if 8 * entry.bucket_count > room:
                continue
            room -= 8 * entry.bucket_count
            left = MAX_ALL_BUCKETS - sum(len(profile.buckets) for profile in profiles)
            profile = self._profile(index, again, second, now, left)
            if profile is not None and self._is_same(index, again):
                profiles.append(profile)
        return tuple(profiles)

    def _is_same(self, index: int, entry: layout.ProfileRecord) -> bool:
        """Tell whether the entry still is of this profile, so that the counts are its own."""
        offset = next(islice(self._entries.offsets(), index, None))
        now = layout.PROFILE.unpack(self._memory.read(offset, layout.PROFILE.size))
        if now.seq == entry.seq:
            return True
        self._copies.pop(index, None)
        return False

    def _profile(
        self, index: int, entry: layout.ProfileRecord, data: bytes, now: int, max_buckets: int
    ) -> SelfProfile | None:
        """Return a profile, None for a damaged entry."""
        regions = self._regions(index, entry, data)
        bucket_size = entry.bucket_size
        if entry.source not in _SOURCES or bucket_size < 4 or bucket_size & (bucket_size - 1):
            return None
        sizes = [-(-region.size // bucket_size) for region in regions]
        if not regions or not entry.counts or entry.counts % 8:
            return None
        if entry.bucket_count > lib.LT_PROFILE_BUCKETS or sum(sizes) != entry.bucket_count:
            return None
        buckets = self._buckets(index, entry, regions, sizes, min(MAX_BUCKETS, max_buckets))
        source, unit = _SOURCES[entry.source]
        ran = entry.ran_ticks + (max(0, now - entry.started) if entry.started else 0)
        return SelfProfile(
            number=index + 1,
            name=clean(entry.name.partition(b"\0")[0]),
            source=source,
            unit=unit,
            interval=entry.interval,
            state=_STATES.get(entry.state, ProfileState.STOPPED),
            all_threads=bool(entry.all_threads),
            bucket_size=bucket_size,
            regions=regions,
            buckets=buckets.picked,
            samples=entry.samples,
            elsewhere=entry.elsewhere,
            lost=entry.lost,
            threads=entry.threads,
            threads_left_out=entry.left_out,
            buckets_left_out=buckets.left_out,
            ran_s=self._clock.seconds(ran),
        )

    def _regions(
        self, index: int, entry: layout.ProfileRecord, data: bytes
    ) -> tuple[ProfileRegion, ...]:
        """Return the regions of a profile; () if one is damaged."""
        if entry.region_count > lib.LT_PROFILE_REGIONS:
            return ()
        start = index * layout.PROFILE.size + layout.PROFILE_REGIONS_AT
        size = layout.PROFILE_REGION.size
        raw = [
            layout.PROFILE_REGION.unpack(data, start + i * size) for i in range(entry.region_count)
        ]
        if any(not region.size or region.start + region.size > _END_OF_ADDRESSES for region in raw):
            return ()
        return tuple(
            ProfileRegion(
                start=region.start,
                size=region.size,
                module=clean(region.module.partition(b"\0")[0]),
                offset=region.offset,
            )
            for region in raw
        )

    def _buckets(
        self,
        index: int,
        entry: layout.ProfileRecord,
        regions: tuple[ProfileRegion, ...],
        sizes: list[int],
        max_buckets: int,
    ) -> _Buckets:
        key = entry.seq, entry.samples, entry.counts, max_buckets
        former = self._copies.get(index)
        if former is not None and former.key == key:
            return former.buckets
        data = self._memory.read(entry.counts, entry.bucket_count * 8)
        picked = ffi.new("struct lt_bucket[]", min(entry.bucket_count, max_buckets))
        left_out = ffi.new("uint32_t *")
        count = lib.lt_pick_buckets(
            ffi.from_buffer("uint64_t[]", data), entry.bucket_count, picked, len(picked), left_out
        )
        rows = layout.BUCKET.each(bytes(ffi.buffer(picked, count * layout.BUCKET.size)))
        buckets = _Buckets(
            _locate_buckets(rows, regions, sizes, entry.bucket_size), int(left_out[0])
        )
        self._copies[index] = _CopiedBuckets(key, buckets)
        return buckets


def _locate_buckets(
    rows: list[layout.BucketRecord],
    regions: tuple[ProfileRegion, ...],
    sizes: list[int],
    bucket_size: int,
) -> tuple[ProfileBucket, ...]:
    """Return buckets with their addresses. ``sizes``: the number of buckets of each region."""
    buckets, region, first = [], 0, 0
    for row in rows:
        while row.index >= first + sizes[region]:
            first += sizes[region]
            region += 1
        address = regions[region].start + (row.index - first) * bucket_size
        buckets.append(ProfileBucket(address=address, count=row.count))
    return tuple(buckets)
