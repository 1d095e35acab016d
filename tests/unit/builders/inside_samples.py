"""Snapshots with samples inside a lock."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace
from unit.builders import records

from locktop.collector.extensions.inside.model import (
    InsideProfile,
    InsideStack,
    LockInside,
    profile_of,
)
from locktop.collector.model import Frame, Snapshot

SITE = 0x7500
#: Three functions that take 70, 20 and 10 of 100 samples; the thread sleeps in the second.
THREE = {"takes_most": 70, "takes_some": 20, "takes_little": 10}
SLEEPING = "takes_some"


def frames(*functions: str) -> tuple[Frame, ...]:
    return tuple(records.frame(name, "work.c", 1 + at) for at, name in enumerate(functions))


def with_samples(
    of: Snapshot,
    lock: int,
    samples: Mapping[str, int] = THREE,
    duration_s: float = 2.0,
    lost: int = 0,
) -> Snapshot:
    """Return the snapshot with samples of these functions inside a lock, 100 in a second."""
    stacks = {9000 + at: frames(name, "holds_once", "main") for at, name in enumerate(samples)}
    found = tuple(
        InsideStack(site=SITE, stack=stack, count=count, on_cpu=name != SLEEPING)
        for stack, (name, count) in zip(stacks, samples.items(), strict=True)
    )
    whole = sum(samples.values())
    inside = LockInside(
        samples=whole,
        on_cpu=sum(one.count for one in found if one.on_cpu),
        share=whole / 100 / duration_s,
        stacks=found,
        pressure=(0.25, 0.5),
        pressure_slice_s=1.0,
    )
    before = profile_of(of)
    locks = {**(before.locks if before is not None else {}), lock: inside}
    return replace(
        of,
        stacks={**of.stacks, **stacks},
        sites={**of.sites, SITE: frames("holds_once")[0]},
        sections={
            **of.sections,
            "inside": InsideProfile(duration_s, 0.01, whole + 3, 3, lost, 2, locks),
        },
    )
