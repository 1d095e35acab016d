"""The records of profiles in the shared memory (``native/include/locktop/abi_profiles.h``)."""

from __future__ import annotations

from typing import NamedTuple

from locktop.collector.native import Record, offset_of


class ProfileRecord(NamedTuple):
    """struct lt_profile without its regions."""

    seq: int
    state: int
    source: int
    all_threads: int
    interval: int
    bucket_size: int
    region_count: int
    counts: int
    bucket_count: int
    samples: int
    elsewhere: int
    lost: int
    threads: int
    left_out: int
    ran_ticks: int
    started: int
    name: bytes


class ProfileRegionRecord(NamedTuple):
    """struct lt_profile_region."""

    start: int
    size: int
    offset: int
    module: bytes


class BucketRecord(NamedTuple):
    """struct lt_bucket."""

    index: int  # type: ignore[assignment]
    count: int  # type: ignore[assignment]


PROFILE = Record(ProfileRecord, "struct lt_profile")
PROFILE_REGION = Record(ProfileRegionRecord, "struct lt_profile_region")
BUCKET = Record(BucketRecord, "struct lt_bucket")
PROFILES_AT = offset_of("struct lt_header", "profiles")
PROFILE_REGIONS_AT = offset_of("struct lt_profile", "region")
