"""Profiles of a program's own code: their figures as text."""

from __future__ import annotations

from collections.abc import Sequence

from locktop.collector.extensions.profiles.model import ProfileRegion, SelfProfile
from locktop.collector.render.words import units
from locktop.collector.render.words.plot import bar

_NS = 1e-9


def profile_name(profile: SelfProfile) -> str:
    """Return the name that the program gave, or ``profile 2``."""
    return profile.name or f"profile {profile.number}"


def interval(profile: SelfProfile) -> str:
    """Return the interval between two samples: ``4.00 ms``, ``10,000 events``."""
    if profile.unit == "ns":
        return units.duration(profile.interval * _NS)
    return units.counted(profile.interval, "event")


def total(profile: SelfProfile, samples: int) -> str:
    """Return what samples stand for: ``1.20 s``, ``2,000,000 events``."""
    if profile.unit == "ns":
        return units.duration(samples * profile.interval * _NS)
    return f"{units.exact(samples * profile.interval)} events"


def region_name(region: ProfileRegion) -> str:
    """Return the function of a region, or ``module+0xoffset``, or its address."""
    module = region.module.rpartition("/")[2]
    location = f"{module}+{region.offset:#x}" if module else f"{region.start:#x}"
    return region.function or location


def region_names(profile: SelfProfile) -> str:
    """Return the names of all regions."""
    return ", ".join(region_name(region) for region in profile.regions)


def threads(profile: SelfProfile) -> str:
    """Return whose samples these are."""
    whose = "all threads" if profile.all_threads else "one thread"
    if not profile.threads_left_out:
        return whose
    return f"{whose}, {units.counted(profile.threads_left_out, 'thread')} left out"


def plot(counts: Sequence[int], most: Sequence[int], width: int) -> str:
    """Return a bar for each count, in ``width`` columns each.

    Args:
        counts: samples of one bucket, one for each profile.
        most: the count that fills the columns, one for each profile.
        width: columns of one bar.
    """
    return " ".join(
        bar(count / largest if largest else 0.0, width)
        for count, largest in zip(counts, most, strict=True)
    )
