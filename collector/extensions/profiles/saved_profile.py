"""Writes and reads files with one profile of a program's own code ("locktop.profile").

A file may come from a stranger: the reader bounds it and cleans its texts.
"""

from __future__ import annotations

import os
from typing import Annotated, Literal

import msgspec
from msgspec import Struct

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.profiles.entry import SelfProfileEntry
from locktop.collector.extensions.profiles.kept_profile import (
    MAX_CODE,
    MAX_LINES,
    CodeLine,
    KeptProfile,
    RegionCode,
    check,
)
from locktop.collector.extensions.profiles.model import SelfProfile
from locktop.collector.linux.regular_file import open_regular
from locktop.collector.render.documents import snapshot_codec
from locktop.collector.render.documents.snapshot_fields import Address, Count, meaning
from locktop.collector.render.files import words

FORMAT: Literal["locktop.profile"] = "locktop.profile"
VERSION = 1
#: Bytes of a file: 65,536 buckets take some 5 MB.
MAX_BYTES = 32 << 20
_PIECE = 64  # bytes of code


class ProcessPart(Struct, kw_only=True):
    """The process that made the profile."""

    pid: Annotated[Count, meaning("Its id.")] = 0
    comm: Annotated[str, meaning("Its name.")] = ""


class CodePart(Struct, kw_only=True):
    """The machine code of a region."""

    start: Annotated[Address, meaning("The address of the region.")]
    code: Annotated[list[str], meaning("The bytes in hexadecimal digits, in pieces.")]


class LinePart(Struct, kw_only=True):
    """The source line of an address."""

    address: Annotated[Address, meaning("An address in a region.")]
    function: Annotated[str, meaning("The function; empty: not known.")] = ""
    file: Annotated[str, meaning("The path; empty: not known.")] = ""
    line: Annotated[Count, meaning("The number of the line.")] = 0


class ProfileDocument(Struct, kw_only=True):
    """A profile, with the code and the source lines of its buckets."""

    format: Literal["locktop.profile"] = FORMAT
    version: int = VERSION
    process: ProcessPart
    taken_at: str = ""
    machine: Annotated[str, meaning("Of the code: x86_64 or aarch64.")] = ""
    profile: SelfProfileEntry
    code: list[CodePart] = []
    lines: list[LinePart] = []


def encode(kept: KeptProfile) -> bytes:
    """Return a profile as JSON text."""
    return snapshot_codec.encode_document(_document(kept))


def _document(kept: KeptProfile) -> ProfileDocument:
    return ProfileDocument(
        process=ProcessPart(pid=kept.pid, comm=kept.comm),
        taken_at=kept.taken_at,
        machine=kept.machine,
        profile=profile_entry(kept.profile),
        code=[
            CodePart(start=Address(region.start), code=_pieces(region.data)) for region in kept.code
        ],
        lines=[
            LinePart(
                address=Address(line.address),
                function=line.function,
                file=line.file,
                line=line.line,
            )
            for line in kept.lines
        ],
    )


def _pieces(data: bytes) -> list[str]:
    # The reader shortens long texts.
    return [data[index : index + _PIECE].hex() for index in range(0, len(data), _PIECE)]


def profile_entry(profile: SelfProfile) -> SelfProfileEntry:
    """Return a profile as the document of a snapshot has it."""
    return msgspec.convert(
        profile, SelfProfileEntry, from_attributes=True, dec_hook=lambda kind, value: kind(value)
    )


def is_saved_profile(data: bytes) -> bool:
    """Return whether a file says of itself that it is a saved profile."""
    return b'"locktop.profile"' in data[:200]


def parse(data: bytes, name: str) -> KeptProfile:
    """Return the profile in a file.

    Args:
        data: the content of the file.
        name: what an error calls the file.

    Raises:
        LocktopError: the content is no saved profile; the message names the wrong field.
    """
    try:
        whole = snapshot_codec.parse_document(data, ProfileDocument, VERSION)
        profile = msgspec.convert(whole.profile, SelfProfile, from_attributes=True)
        check(profile)
        code = _read_code(whole, profile)
    except ValueError as error:
        raise LocktopError(f"{name} is no profile of locktop: {error}") from None
    return KeptProfile(
        profile=profile,
        comm=whole.process.comm,
        pid=whole.process.pid,
        taken_at=whole.taken_at,
        machine=whole.machine,
        code=code,
        lines=tuple(
            CodeLine(
                address=int(line.address), function=line.function, file=line.file, line=line.line
            )
            for line in whole.lines[: 2 * MAX_LINES]
        ),
    )


def _read_code(whole: ProfileDocument, profile: SelfProfile) -> tuple[RegionCode, ...]:
    sizes = {region.start: region.size for region in profile.regions}
    if sum(len(piece) for part in whole.code for piece in part.code) > 2 * MAX_CODE:
        raise ValueError(f"there are over {MAX_CODE} bytes of code")
    regions = []
    for part in whole.code:
        data = bytes.fromhex("".join(part.code))
        if sizes.get(part.start) != len(data):
            raise ValueError("the code is not as large as its region")
        regions.append(RegionCode(start=int(part.start), data=data))
    return tuple(regions)


def read_file(path: str) -> bytes:
    """Return the content of a regular file of at most MAX_BYTES. Raises LocktopError."""
    try:
        with os.fdopen(open_regular(path, max_bytes=MAX_BYTES, follow_link=True), "rb") as file:
            return file.read(MAX_BYTES)
    except OSError as error:
        raise LocktopError(f"{path}: {words(error)}") from None
