"""Call stacks: frames."""

from __future__ import annotations

import posixpath

from msgspec import Struct


class Frame(Struct, frozen=True, gc=False):
    """One frame of a call stack. ``function`` is "" as long as no symbol is known."""

    address: int
    function: str
    file: str | None
    line: int | None
    module: str  # base name of the mapped file, "" if none
    offset: int  # offset of the address in the module's file, for module+0xoffset
    inlined: bool = False  # inlined into the next outer frame, which has the same address
    directory: str = ""  # of ``file``, as the compiler knew it; "" if ``file`` is all that is known

    @property
    def path(self) -> str:
        """The path of the source file on the machine that compiled it; "" if not known."""
        return posixpath.join(self.directory, self.file) if self.file else ""
