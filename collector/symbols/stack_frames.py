"""Frames out of source locations, and which frames of a stack belong to the program."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from msgspec.structs import replace

from locktop.collector.model import Frame
from locktop.collector.native import lib
from locktop.collector.sanitize import clean
from locktop.collector.symbols.demangle import demangle

if TYPE_CHECKING:
    from locktop.collector.symbols.dwarf.unit_index import SourceLocation

#: The module of a frame in a library that is not loaded any more.
UNLOADED = "unloaded library"
#: The outermost functions of a thread or a program: frames beyond them are not real.
_OUTERMOST = frozenset({"clone", "__clone", "clone3", "__clone3", "_start", "__clone_internal"})
_LIBRARY = "liblocktop"


def unloaded_frame(address: int) -> Frame:
    """Return the frame of an address in a library that is not loaded any more."""
    was_at = address & ((1 << lib.LT_UNLOADED_BIT) - 1)
    return Frame(address=was_at, function="", file=None, line=None, module=UNLOADED, offset=was_at)


def located_frames(frame: Frame, locations: tuple[SourceLocation, ...]) -> tuple[Frame, ...]:
    """Return the frames of one address, each with its source location."""
    last = len(locations) - 1
    paths = [posixpath.split(clean(location.file)) for location in locations]
    return tuple(
        replace(
            frame,
            function=clean(demangle(location.function))
            or (frame.function if number == last else ""),
            file=paths[number][1] if location.line else None,
            directory=paths[number][0] if location.line else "",
            line=location.line or None,
            inlined=number < last,
        )
        for number, location in enumerate(locations)
    )


def program_frames(frames: list[Frame]) -> tuple[Frame, ...]:
    """Return a stack without frames of the preload library and beyond the thread's start."""
    kept: list[Frame] = []
    for frame in frames:
        if frame.module.startswith(_LIBRARY):
            continue
        kept.append(frame)
        if frame.function in _OUTERMOST:
            break
    return tuple(kept)
