"""The profiles in the document of a snapshot (render/documents/snapshot_document.py)."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from locktop.collector.extensions.profiles.model import ProfileState
from locktop.collector.render.documents.snapshot_fields import (
    NO_ADDRESS,
    Address,
    Count,
    Number,
    meaning,
)


class ProfileRegionEntry(Struct, kw_only=True, gc=False):
    """A range of code."""

    start: Annotated[Address, meaning("The address of the first byte.")]
    size: Annotated[Count, meaning("Bytes.")]
    module: Annotated[str, meaning("The path of the file; empty: code made at run time.")] = ""
    offset: Annotated[Address, meaning("The offset of the start in that file.")] = NO_ADDRESS
    function: Annotated[str, meaning("The function at the start; empty: not known.")] = ""


class ProfileBucketEntry(Struct, kw_only=True, gc=False):
    """A bucket that has samples."""

    address: Annotated[Address, meaning("The address of its first byte.")]
    count: Annotated[Count, meaning("Samples.")]


class SelfProfileEntry(Struct, kw_only=True, gc=False):
    """A profile that the program makes of its own code."""

    number: Annotated[Count, meaning("Differs among the profiles of this moment.")]
    name: Annotated[str, meaning("The name that the program gave.")] = ""
    source: Annotated[str, meaning("The source of the samples, such as timer or cycles.")]
    unit: Annotated[str, meaning("The unit of the interval: ns or events.")]
    interval: Annotated[Count, meaning("The interval between two samples, in this unit.")]
    state: Annotated[ProfileState, meaning("Whether the profile runs, or why not.")]
    all_threads: Annotated[bool, meaning("Of all threads, not only of one.")] = False
    bucket_size: Annotated[Count, meaning("Bytes of code of one bucket.")]
    regions: Annotated[list[ProfileRegionEntry], meaning("The ranges of code.")] = []
    buckets: Annotated[list[ProfileBucketEntry], meaning("The buckets that have samples.")] = []
    samples: Annotated[Count, meaning("Samples in all buckets.")]
    elsewhere: Annotated[Count, meaning("Samples of code outside the regions.")] = 0
    lost: Annotated[Count, meaning("Samples whose place is not known.")] = 0
    threads: Annotated[Count, meaning("Threads that are sampled now.")] = 0
    threads_left_out: Annotated[Count, meaning("Threads that could not be sampled.")] = 0
    buckets_left_out: Annotated[Count, meaning("Buckets with fewer samples, left out.")] = 0
    ran_s: Annotated[Number, meaning("Seconds between starts and stops.")] = 0.0
