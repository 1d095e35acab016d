"""Earlier walks of samples, found again by the return addresses that they led over.

A sample of a running thread has all registers, and walk_cache.py knows walks from two registers
alone. This cache finds a walk again if the thread was at the same instruction. Every return address
must also lie where the earlier walk found it.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from locktop.collector.symbols.unwind.arch import Architecture
from locktop.collector.symbols.unwind.cursor import Unwound
from locktop.collector.symbols.unwind.stack_memory import StackCopy
from locktop.collector.symbols.unwind.unwinder import Unwinder

_WORD = 8
_MAX_WALKS = 8  # of one instruction; most instructions have one
_MAX_KEPT = 20_000


class _Walk(NamedTuple):
    format: struct.Struct
    begin: int  # offset in the stack
    words: tuple[int, ...]  # the return addresses
    unwound: Unwound


class SampleCache:
    """The walks of one process."""

    def __init__(self, architecture: Architecture) -> None:
        self._pc = architecture.pc
        # Elsewhere a return address may be in a register.
        self._is_known = architecture.name == "x86_64"
        self._walks: dict[int, list[_Walk]] = {}  # by program counter
        self._kept = 0
        self._version = -1

    def unwind(self, copy: StackCopy, unwinder: Unwinder) -> Unwound:
        """Return the stack of a copy: from the cache, else by a walk."""
        version = unwinder.code_version()
        if version != self._version:
            self._walks, self._kept, self._version = {}, 0, version
        walks = self._walks.get(copy.registers[self._pc], ())
        for walk in walks:
            end = walk.begin + walk.format.size
            if end <= len(copy.stack) and (
                walk.format.unpack_from(copy.stack, walk.begin) == walk.words
            ):
                return walk.unwound
        unwound = unwinder.sampled_stack(copy.registers, copy.stack, copy.sp)
        self._keep(copy, unwound)
        return unwound

    def _keep(self, copy: StackCopy, unwound: Unwound) -> None:
        if not self._is_known or unwound.exact != (0,) or len(unwound.addresses) < 2:
            return
        offsets = [height - _WORD for height in unwound.heights[1:]]
        layout, position = ["="], offsets[0]
        for offset in offsets:
            if offset < position:
                return
            layout.append(f"{offset - position}xQ")
            position = offset + _WORD
        if self._kept >= _MAX_KEPT:
            self._walks, self._kept = {}, 0
        walks = self._walks.setdefault(copy.registers[self._pc], [])
        if len(walks) < _MAX_WALKS:
            self._kept += 1
            walk = struct.Struct("".join(layout))
            walks.append(_Walk(walk, offsets[0], unwound.addresses[1:], unwound))
