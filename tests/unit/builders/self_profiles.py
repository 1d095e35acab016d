"""Profiles of a program's own code, as a test needs them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from locktop.collector.extensions.profiles.kept_profile import CodeLine, KeptProfile, RegionCode
from locktop.collector.extensions.profiles.model import (
    ProfileBucket,
    ProfileRegion,
    ProfileState,
    SelfProfile,
)

START = 0x5000
#: x86-64: a loop with a conditional jump; 4 bytes each, but for the last two.
CODE = bytes.fromhex("4883c2014839fa900fb60a9084c979f2c3")


def self_profile(
    counts: Mapping[int, int], name: str = "sum", number: int = 1, **figures: Any
) -> SelfProfile:
    """Return a profile of a function at ``START``. ``counts``: samples by offset."""
    regions = figures.pop(
        "regions",
        (
            ProfileRegion(
                start=START, size=len(CODE), module="/bin/prog", offset=0x1000, function="sum"
            ),
        ),
    )
    start = regions[0].start
    return SelfProfile(
        **{
            "number": number,
            "name": name,
            "source": "timer",
            "unit": "ns",
            "interval": 4_000_000,
            "state": ProfileState.STOPPED,
            "all_threads": False,
            "bucket_size": 4,
            "regions": regions,
            "buckets": tuple(
                ProfileBucket(address=start + at, count=count) for at, count in counts.items()
            ),
            "samples": sum(counts.values()),
            **figures,
        }
    )


def kept(profile: SelfProfile, code: bytes = CODE) -> KeptProfile:
    """Return a profile with the code and the lines of its region; ``code`` b"": without."""
    start = profile.regions[0].start
    return KeptProfile(
        profile=profile,
        comm="prog",
        pid=42,
        taken_at="2026-11-23T10:00:00.000Z",
        machine="x86_64",
        code=(RegionCode(start=start, data=code),) if code else (),
        lines=(
            CodeLine(address=start, function="sum", file="/src/sum.c", line=7),
            CodeLine(address=start + 12, function="sum", file="/src/sum.c", line=9),
        ),
    )
