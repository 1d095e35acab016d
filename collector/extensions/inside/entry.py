"""The samples inside locks in the document of a snapshot."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from locktop.collector.render.documents.snapshot_fields import (
    NO_ADDRESS,
    Address,
    Count,
    Number,
    StackId,
    meaning,
)


class InsideEntry(Struct, kw_only=True, gc=False):
    """How locktop sampled what runs inside locks."""

    duration_s: Annotated[Number, meaning("Seconds of the profile.")]
    period_s: Annotated[Number, meaning("Seconds of a hold that one sample stands for.")]
    samples: Annotated[Count, meaning("All samples of the sampled threads.")]
    unjoined: Annotated[Count, meaning("Of these, the samples without a contended hold.")]
    lost: Annotated[Count, meaning("Samples that found no room.")] = 0
    threads: Annotated[Count, meaning("Threads that locktop samples now.")] = 0


class InsideStackEntry(Struct, kw_only=True, gc=False):
    """Samples of threads that held the lock, with one call site and one stack."""

    site: Annotated[Address, meaning("Where the thread took the lock.")] = NO_ADDRESS
    stack: Annotated[StackId, meaning('The number of the stack in "stacks"; 0: not known.')] = 0
    count: Annotated[Count, meaning("Samples.")]
    on_cpu: Annotated[bool, meaning("The thread ran; else it slept.")]
    call: Annotated[str, meaning("The system call in which the thread slept.")] = ""


class LockInsideEntry(Struct, kw_only=True, gc=False):
    """The stacks of threads that held the lock."""

    samples: Annotated[Count, meaning("Samples of threads that held the lock.")]
    on_cpu: Annotated[Count, meaning("Of the samples, those of threads that ran.")]
    share: Annotated[Number, meaning("Held time as a share of the profile's time.")]
    stacks: Annotated[list[InsideStackEntry], meaning("The stacks, most samples first.")] = []
    pressure: Annotated[
        list[Number],
        meaning("Shares of all threads' time in waits for the lock, by equal slices of time."),
    ] = []
    pressure_slice_s: Annotated[Number, meaning("Seconds of one slice of the pressure.")] = 0.0
