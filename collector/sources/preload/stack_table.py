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

#: Ids of stacks that are not in the file end here. No file is so large that it uses them.
_LAST_ID = (1 << 32) - 1


class StackFrames:
    """Frames by stack id. A stack never changes once its id is published, so each is read once."""

    def __init__(self, memory: SharedMemory, resolver: Resolver) -> None:
        self._memory = memory
        self._resolver = resolver
        self._addresses: dict[int, tuple[int, ...]] = {}
        self._cut: set[int] = set()
        self._of_sites: dict[int, int] = {}

    def site_id(self, site: int) -> int:
        """Return the id of a stack with nothing but this return address; 0 for address 0."""
        if not site:
            return 0
        stack = self._of_sites.setdefault(site, _LAST_ID - len(self._of_sites))
        self._addresses[stack] = (site,)
        return stack

    def frames(self, stack: int) -> tuple[Frame, ...]:
        """Return a stack's frames, innermost first; () for id 0 or a damaged stack."""
        if not stack:
            return ()
        frames = self._resolver.stack(stack, self.addresses(stack))
        return (*frames, CUT_WHEN_RECORDED) if stack in self._cut else frames

    def addresses(self, stack: int) -> tuple[int, ...]:
        """Return a stack's return addresses as recorded."""
        addresses = self._addresses.get(stack)
        if addresses is None:
            try:
                addresses = self._read(stack)
            except LocktopError:
                addresses = ()  # the id points outside the file
            self._addresses[stack] = addresses
        return addresses

    def _read(self, stack: int) -> tuple[int, ...]:
        offset = stack * lib.LT_STACK_UNIT
        depth = layout.STACK.unpack(self._memory.read(offset, layout.STACK.size)).depth
        if depth & lib.LT_STACK_CUT:
            self._cut.add(stack)
        depth = min(depth & ~lib.LT_STACK_CUT, lib.LT_STACK_MAX)
        return struct.unpack(f"={depth}Q", self._memory.read(offset + layout.STACK.size, 8 * depth))
