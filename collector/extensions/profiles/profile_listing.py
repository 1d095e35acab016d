"""One profile, or two profiles of the same region beside each other, by bucket."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.profiles.instructions import (
    WITHOUT_CAPSTONE,
    Instruction,
    can_disassemble,
    instructions,
)
from locktop.collector.extensions.profiles.kept_profile import (
    CodeLine,
    KeptProfile,
    counts,
    position,
)
from locktop.collector.extensions.profiles.model import ProfileRegion


class ListedInstruction(Struct, frozen=True, gc=False):
    """An instruction of a bucket with its source line, if that is known."""

    instruction: Instruction
    line: CodeLine | None


class BucketRow(Struct, frozen=True):
    """A bucket with samples in one of the profiles, or beside such a bucket."""

    region: int  # index of the region
    offset: int  # bytes from the start of the region
    counts: tuple[int, ...]  # samples, one for each profile
    instructions: tuple[ListedInstruction, ...]  # () if they are not known
    line: CodeLine | None  # of the first byte

    @property
    def difference(self) -> int:
        """Samples of the last profile minus those of the first one."""
        return self.counts[-1] - self.counts[0]


class Listing(Struct, frozen=True):
    """The buckets of one or two profiles, in the order of their addresses."""

    profiles: tuple[KeptProfile, ...]
    rows: tuple[BucketRow, ...]
    notes: tuple[str, ...]  # what is missing, and why

    @property
    def regions(self) -> tuple[ProfileRegion, ...]:
        """The regions of the first profile."""
        return self.profiles[0].profile.regions

    @property
    def largest_difference(self) -> BucketRow | None:
        """The bucket in which two profiles differ most; None if they are equal."""
        row = max(self.rows, key=lambda row: abs(row.difference), default=None)
        return row if row is not None and row.difference else None

    @property
    def is_contrast(self) -> bool:
        """Whether there are two profiles."""
        return len(self.profiles) > 1


def listing(profiles: Sequence[KeptProfile]) -> Listing:
    """Return the listing of one profile, or of two.

    Raises:
        LocktopError: the two are not of the same code.
    """
    if len(profiles) > 1:
        _check_same(profiles[0], profiles[1])
    samples: dict[tuple[int, int], list[int]] = {}
    for number, kept in enumerate(profiles):
        for key, count in counts(kept.profile).items():
            samples.setdefault(key, [0] * len(profiles))[number] = count
    lines = {key: line for kept in reversed(profiles) for key, line in _lines(kept).items()}
    with_code = next((kept for kept in profiles if kept.code), profiles[0])
    of_bucket = _instructions(with_code)
    rows = tuple(
        BucketRow(
            region=key[0],
            offset=key[1],
            counts=tuple(samples[key]),
            instructions=tuple(
                ListedInstruction(instruction, lines.get((key[0], offset)))
                for offset, instruction in of_bucket.get(key, ())
            ),
            line=lines.get(key),
        )
        for key in sorted(samples)
        if any(samples[key]) or key in of_bucket
    )
    return Listing(profiles=tuple(profiles), rows=rows, notes=_notes(profiles, with_code))


def _check_same(first: KeptProfile, other: KeptProfile) -> None:
    if _positions(first) != _positions(other):
        raise LocktopError(
            f"the profiles are of different regions: {_describe(first)}, {_describe(other)}"
        )
    sizes = first.profile.bucket_size, other.profile.bucket_size
    if sizes[0] != sizes[1]:
        raise LocktopError(
            f"the profiles have buckets of different sizes: {sizes[0]} and {sizes[1]} bytes"
        )
    code = [[region.data for region in kept.code] for kept in (first, other)]
    if all(code) and code[0] != code[1]:
        raise LocktopError("the profiles are of different builds: the code of the region differs")


def _positions(kept: KeptProfile) -> list[tuple[str, int, int]]:
    """Return each region as the name of its file, its offset there, and its size.

    Code that a program makes at run time has only its address.
    """
    return [
        (region.module.rpartition("/")[2], region.offset if region.module else region.start,
         region.size)
        for region in kept.profile.regions
    ]  # fmt: skip


def _describe(kept: KeptProfile) -> str:
    region = kept.profile.regions[0]
    module = region.module.rpartition("/")[2]
    name = region.function or (f"{module}+{region.offset:#x}" if module else f"{region.start:#x}")
    return f"{name}, {region.size} bytes"


def _lines(kept: KeptProfile) -> dict[tuple[int, int], CodeLine]:
    positions = ((position(kept.profile, line.address), line) for line in kept.lines)
    return {key: line for key, line in positions if key is not None}


def _instructions(kept: KeptProfile) -> dict[tuple[int, int], list[tuple[int, Instruction]]]:
    """Return the instructions of each bucket by region and offset, each with its own offset."""
    instructions_by_bucket: dict[tuple[int, int], list[tuple[int, Instruction]]] = {}
    size = kept.profile.bucket_size
    indexes = {region.start: index for index, region in enumerate(kept.profile.regions)}
    for code in kept.code:
        if code.start not in indexes:
            continue
        for instruction in instructions(code.data, code.start, kept.machine):
            offset = instruction.address - code.start
            bucket = indexes[code.start], offset // size * size
            instructions_by_bucket.setdefault(bucket, []).append((offset, instruction))
    return instructions_by_bucket


def _notes(profiles: Sequence[KeptProfile], with_code: KeptProfile) -> tuple[str, ...]:
    notes = []
    if not with_code.code:
        notes.append("the code was not kept: instructions are missing")
    elif len(with_code.code) < len(with_code.profile.regions):
        notes.append("of some regions the code was not kept: their instructions are missing")
    if with_code.code and not can_disassemble():
        notes.append(WITHOUT_CAPSTONE)
    units = [(kept.profile.source, kept.profile.interval) for kept in profiles]
    if len(set(units)) > 1:
        notes.append("the profiles differ in source or interval: compare shares, not counts")
    left_out = sum(kept.profile.buckets_left_out for kept in profiles)
    if left_out:
        notes.append(f"{left_out} buckets with fewer samples are left out")
    return tuple(notes)
