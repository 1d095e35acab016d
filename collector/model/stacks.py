"""Call stacks: frames."""

from __future__ import annotations

from msgspec import Struct


class Frame(Struct, frozen=True, gc=False):
    """One frame of a call stack. ``function`` is "" where no symbol was found (yet)."""

    address: int
    function: str
    file: str | None
    line: int | None
    module: str  # base name of the mapped file, "" if none
    offset: int  # of the address in the module's file, for module+0xoffset
    inlined: bool = False  # into the next frame out, which has the same address
