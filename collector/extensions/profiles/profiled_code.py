"""Reads the code of a profile's regions from the process, and finds its source lines."""

from __future__ import annotations

import platform
from contextlib import closing

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.profiles.instructions import instructions
from locktop.collector.extensions.profiles.kept_profile import (
    MAX_CODE,
    MAX_LINES,
    CodeLine,
    KeptProfile,
    RegionCode,
    check,
    counts,
    position,
)
from locktop.collector.extensions.profiles.model import ProfileState, SelfProfile
from locktop.collector.linux import process_memory
from locktop.collector.model import Frame, Snapshot
from locktop.collector.symbols.resolver import Resolver

#: Debug information of a large program may take some seconds.
_PATIENCE_S = 30.0


def profile_without_code(snapshot: Snapshot, profile: SelfProfile) -> KeptProfile:
    """Return a profile of a snapshot, of which nothing but the counts is known.

    Raises:
        LocktopError: the snapshot comes from a stranger, and the profile is damaged.
    """
    try:
        check(profile)
    except ValueError as error:
        raise LocktopError(f"the profile is damaged: {error}") from None
    return KeptProfile(
        profile=profile,
        comm=snapshot.process.comm,
        pid=snapshot.process.pid,
        taken_at=snapshot.taken_at,
    )


def profile_with_code(snapshot: Snapshot, profile: SelfProfile) -> KeptProfile:
    """Return a profile of a running process with the code and the lines of its buckets.

    Code and lines that cannot be read are left out. The call may take some seconds.
    """
    # Other code may be where the unloaded code was.
    if profile.state is ProfileState.UNLOADED:
        return profile_without_code(snapshot, profile)
    pid = snapshot.process.pid
    machine = platform.machine()
    code = _code(pid, profile)
    return KeptProfile(
        profile=profile,
        comm=snapshot.process.comm,
        pid=pid,
        taken_at=snapshot.taken_at,
        machine=machine,
        code=code,
        lines=_lines(pid, profile, _addresses(profile, code, machine)),
    )


def _code(pid: int, profile: SelfProfile) -> tuple[RegionCode, ...]:
    regions, room = [], MAX_CODE
    for region in profile.regions:
        if region.size > room:
            continue
        data = process_memory.read(pid, region.start, region.size)
        if len(data) == region.size:
            regions.append(RegionCode(start=region.start, data=data))
            room -= region.size
    return tuple(regions)


def _addresses(profile: SelfProfile, code: tuple[RegionCode, ...], machine: str) -> list[int]:
    """Return the addresses of the buckets that are shown, and of their instructions.

    The buckets with most samples come first.
    """
    samples = counts(profile)
    of_bucket: dict[tuple[int, int], list[int]] = {
        key: [profile.regions[key[0]].start + key[1]] for key in samples
    }
    for region in code:
        for instruction in instructions(region.data, region.start, machine):
            key = position(profile, instruction.address)
            if key is not None:
                bucket = key[0], key[1] // profile.bucket_size * profile.bucket_size
                of_bucket.get(bucket, []).append(instruction.address)
    by_count = sorted(samples, key=lambda key: -samples[key])
    every = (address for key in by_count for address in of_bucket[key])
    return list(dict.fromkeys(every))[:MAX_LINES]


def _lines(pid: int, profile: SelfProfile, addresses: list[int]) -> tuple[CodeLine, ...]:
    with closing(Resolver(pid)) as resolver:
        # The resolver expects return addresses.
        for address in addresses:
            resolver.frame(address + 1)
        resolver.wait(_PATIENCE_S)
        frames = {address: resolver.frame(address + 1) for address in addresses}
    return tuple(_line(address, frames[address]) for address in sorted(frames))


def _line(address: int, frame: Frame) -> CodeLine:
    return CodeLine(
        address=address,
        function=frame.function,
        file=frame.file or "",
        line=frame.line or 0,
    )
