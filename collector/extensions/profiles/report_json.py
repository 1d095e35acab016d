"""One profile of a program's own code, or two beside each other, as one JSON object."""

from __future__ import annotations

from typing import Any

import msgspec

from locktop.collector.extensions.profiles.entry import (
    ProfileRegionEntry,
    SelfProfileEntry,
)
from locktop.collector.extensions.profiles.kept_profile import CodeLine, KeptProfile
from locktop.collector.extensions.profiles.model import ProfileState, SelfProfile
from locktop.collector.extensions.profiles.profile_listing import BucketRow, Listing
from locktop.collector.extensions.profiles.saved_profile import profile_entry
from locktop.collector.render.documents import snapshot_codec

FORMAT = "locktop.profile_report"
LIST_FORMAT = "locktop.profiles"
VERSION = 1


class ReportedProfile(msgspec.Struct, kw_only=True):
    """The totals of one profile."""

    pid: int
    comm: str
    taken_at: str
    name: str
    source: str
    unit: str
    interval: int
    state: ProfileState
    bucket_size: int
    regions: list[ProfileRegionEntry]
    samples: int
    elsewhere: int
    lost: int
    ran_s: float


class ReportedInstruction(msgspec.Struct, kw_only=True):
    """An instruction of a bucket."""

    offset: int
    text: str
    file: str
    line: int


class ReportedBucket(msgspec.Struct, kw_only=True):
    """A bucket, with its samples in each profile."""

    region: int
    offset: int
    counts: list[int]
    function: str
    file: str
    line: int
    instructions: list[ReportedInstruction]


class ProfileReport(msgspec.Struct, kw_only=True):
    """The whole object."""

    format: str = FORMAT
    version: int = VERSION
    profiles: list[ReportedProfile]
    buckets: list[ReportedBucket]
    notes: list[str]


class ProfileList(msgspec.Struct, kw_only=True):
    """All profiles of a process."""

    format: str = LIST_FORMAT
    version: int = VERSION
    profiles: list[SelfProfileEntry]


def encode_list(profiles: tuple[SelfProfile, ...]) -> bytes:
    """Return the profiles of a process as JSON text."""
    entries = ProfileList(profiles=[profile_entry(profile) for profile in profiles])
    return snapshot_codec.encode_document(entries)


def encode(listing: Listing) -> bytes:
    """Return a listing as JSON text."""
    base = [_start(listing, index) for index in range(len(listing.regions))]
    whole = ProfileReport(
        profiles=[_profile(kept) for kept in listing.profiles],
        buckets=[_bucket(row, base[row.region]) for row in listing.rows],
        notes=list(listing.notes),
    )
    return snapshot_codec.encode_document(whole)


def _start(listing: Listing, index: int) -> int:
    """Return the address of a region in the profile whose instructions the rows have."""
    with_code = next((kept for kept in listing.profiles if kept.code), listing.profiles[0])
    return with_code.profile.regions[index].start


def _profile(kept: KeptProfile) -> ReportedProfile:
    entry = profile_entry(kept.profile)
    return ReportedProfile(
        pid=kept.pid,
        comm=kept.comm,
        taken_at=kept.taken_at,
        **{name: getattr(entry, name) for name in _OF_ENTRY},
    )


_OF_ENTRY = (
    "name", "source", "unit", "interval", "state", "bucket_size", "regions", "samples",
    "elsewhere", "lost", "ran_s",
)  # fmt: skip


def _bucket(row: BucketRow, start: int) -> ReportedBucket:
    return ReportedBucket(
        region=row.region,
        offset=row.offset,
        counts=list(row.counts),
        instructions=[
            ReportedInstruction(
                offset=entry.instruction.address - start,
                text=entry.instruction.text,
                **_location(entry.line or row.line),
            )
            for entry in row.instructions
        ],
        function=row.line.function if row.line is not None else "",
        **_location(row.line),
    )


def _location(line: CodeLine | None) -> dict[str, Any]:
    return {"file": line.file, "line": line.line} if line is not None else {"file": "", "line": 0}
