"""The stacks that a snapshot refers to: read from the file once, named by the resolver."""

from __future__ import annotations

import struct

from locktop.collector import abi
from locktop.collector.abi import lib
from locktop.collector.errors import LocktopError
from locktop.collector.model import Frame
from locktop.collector.shm import SharedMemory
from locktop.collector.symbols.resolver import Resolver


class StackFrames:
    """Frames by stack id. A stack never changes once its id is out, so each is read once."""

    def __init__(self, memory: SharedMemory, resolver: Resolver) -> None:
        self._memory = memory
        self._resolver = resolver
        self._addresses: dict[int, tuple[int, ...]] = {}

    def of(self, stack: int) -> tuple[Frame, ...]:
        """Return a stack's frames, innermost first; () for id 0 or a damaged one."""
        return self._resolver.stack(stack, self.addresses(stack)) if stack else ()

    def addresses(self, stack: int) -> tuple[int, ...]:
        """Return a stack's return addresses as recorded."""
        found = self._addresses.get(stack)
        if found is None:
            try:
                found = self._read(stack * lib.LT_STACK_UNIT)
            except LocktopError:
                found = ()  # an id that leads out of the file
            self._addresses[stack] = found
        return found

    def _read(self, at: int) -> tuple[int, ...]:
        depth = abi.STACK.at(self._memory.read(at, abi.STACK.size)).depth
        depth = min(depth, lib.LT_STACK_MAX)
        return struct.unpack(f"={depth}Q", self._memory.read(at + abi.STACK.size, 8 * depth))
