"""The recorded stacks that a snapshot refers to: read once from the file, named by the resolver."""

from __future__ import annotations

import struct

from locktop.collector.errors import LocktopError
from locktop.collector.model import Frame
from locktop.collector.model.frames import CUT_WHEN_RECORDED
from locktop.collector.native import lib
from locktop.collector.shm import layout
from locktop.collector.shm.segment import SharedMemory
from locktop.collector.symbols.resolver import Resolver


class StackFrames:
    """Frames by stack id. A stack never changes once its id is published, so each is read once."""

    def __init__(self, memory: SharedMemory, resolver: Resolver) -> None:
        self._memory = memory
        self._resolver = resolver
        self._addresses: dict[int, tuple[int, ...]] = {}
        self._cut: set[int] = set()

    def of(self, stack: int) -> tuple[Frame, ...]:
        """Return a stack's frames, innermost first; () for id 0 or a damaged stack."""
        if not stack:
            return ()
        frames = self._resolver.stack(stack, self.addresses(stack))
        return (*frames, CUT_WHEN_RECORDED) if stack in self._cut else frames

    def addresses(self, stack: int) -> tuple[int, ...]:
        """Return a stack's return addresses as recorded."""
        found = self._addresses.get(stack)
        if found is None:
            try:
                found = self._read(stack)
            except LocktopError:
                found = ()  # the id points outside the file
            self._addresses[stack] = found
        return found

    def _read(self, stack: int) -> tuple[int, ...]:
        at = stack * lib.LT_STACK_UNIT
        depth = layout.STACK.at(self._memory.read(at, layout.STACK.size)).depth
        if depth & lib.LT_STACK_CUT:
            self._cut.add(stack)
        depth = min(depth & ~lib.LT_STACK_CUT, lib.LT_STACK_MAX)
        return struct.unpack(f"={depth}Q", self._memory.read(at + layout.STACK.size, 8 * depth))
