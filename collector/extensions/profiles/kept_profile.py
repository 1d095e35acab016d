"""A profile that a program made of its own code, with what explains its buckets."""

from __future__ import annotations

from msgspec import Struct

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.profiles.model import SelfProfile

#: Bytes of the code of one profile that are kept. Larger regions have counts and lines alone.
MAX_CODE = 256 << 10
#: Addresses of one profile whose source lines are kept.
MAX_LINES = 4096


_MAX_REGIONS = 8
_MAX_BUCKETS = 65_536
_END_OF_ADDRESSES = 1 << 64
#: Buckets before and behind one with samples that are shown, too.
BESIDE = 2


class CodeLine(Struct, frozen=True, gc=False):
    """The source line of an address."""

    address: int
    function: str
    file: str = ""  # path; "": not known
    line: int = 0


class RegionCode(Struct, frozen=True, gc=False):
    """The machine code of a region."""

    start: int  # address
    data: bytes


class KeptProfile(Struct, frozen=True):
    """A profile with the code and the source lines of its regions."""

    profile: SelfProfile
    comm: str  # name of the process
    pid: int
    taken_at: str  # ISO 8601
    machine: str = ""  # of the code: "x86_64" or "aarch64"; "": not known
    code: tuple[RegionCode, ...] = ()
    lines: tuple[CodeLine, ...] = ()


def check(profile: SelfProfile) -> None:
    """Raise ValueError for a profile that no library can have made: a file may come from a
    stranger."""
    size = profile.bucket_size
    if not 4 <= size <= 1 << 30 or size & (size - 1):
        raise ValueError(f"bucket_size is {size}, no power of two from 4 on")
    if not 1 <= len(profile.regions) <= _MAX_REGIONS:
        raise ValueError(f"there are {len(profile.regions)} regions, not 1 to {_MAX_REGIONS}")
    for region in profile.regions:
        if not region.size or region.start + region.size > _END_OF_ADDRESSES:
            raise ValueError("a region is empty or ends behind the last address")
    if len(profile.buckets) > _MAX_BUCKETS:
        raise ValueError(f"there are over {_MAX_BUCKETS} buckets")
    for bucket in profile.buckets:
        key = position(profile, bucket.address)
        if key is None or key[1] % size:
            raise ValueError(f"no bucket of the regions begins at {int(bucket.address):#x}")


def position(profile: SelfProfile, address: int) -> tuple[int, int] | None:
    """Return the index of the region that has an address, and the offset there; None: no region."""
    for index, region in enumerate(profile.regions):
        if region.start <= address < region.start + region.size:
            return index, address - region.start
    return None


def counts(profile: SelfProfile) -> dict[tuple[int, int], int]:
    """Return the samples by region and offset, also of the buckets beside those with samples.

    A sample often counts at the instruction behind the one that took the time.
    """
    samples: dict[tuple[int, int], int] = {}
    size = profile.bucket_size
    for bucket in profile.buckets:
        key = position(profile, bucket.address)
        if key is None:
            continue
        index, offset = key
        samples[key] = bucket.count
        for beside in range(max(0, offset - BESIDE * size), offset + (BESIDE + 1) * size, size):
            if beside < profile.regions[index].size:
                samples.setdefault((index, beside), 0)
    return samples


def profile_named(profiles: tuple[SelfProfile, ...], name: str, origin: str) -> SelfProfile:
    """Return the profile with a name, or with a number as in ``2``.

    Args:
        profiles: those of a process or of a snapshot.
        name: the name that the program gave, or the number.
        origin: what an error calls the process or the file.

    Raises:
        LocktopError: none or several profiles have the name.
    """
    matches = [profile for profile in profiles if profile.name == name]
    if not matches and name.isdecimal() and len(name) < 10:
        matches = [profile for profile in profiles if profile.number == int(name)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        numbers = ", ".join(str(profile.number) for profile in matches)
        raise LocktopError(
            f"{origin}: several profiles are called {name!r}: choose one of {numbers}"
        )
    if not profiles:
        raise LocktopError(f"{origin}: there is no profile; docs/profile.md says how to make one")
    there_are = ", ".join(profile.name or str(profile.number) for profile in profiles[:10])
    raise LocktopError(f"{origin}: there is no profile {name!r}; there are {there_are}")
