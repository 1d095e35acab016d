"""The part of an extension in the session of a preloaded process: it reads the shared memory."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from locktop.collector.model import Draft
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.reader import Reading
from locktop.collector.shm.segment import SharedMemory
from locktop.collector.sources.preload.stack_table import StackFrames
from locktop.collector.symbols.resolver import Resolver


class SessionContext(Struct, frozen=True):
    """The readers of one program of a preloaded process."""

    memory: SharedMemory
    clock: Clock
    resolver: Resolver
    frames: StackFrames


class SessionPart(Protocol):
    """Reads what an extension shows of one program, in each scan."""

    def build(self, draft: Draft, reading: Reading) -> None:
        """Fill in the section soon after the reading; request the names of functions.

        Raises:
            LocktopError: the shared memory is damaged.
        """

    def complete(self, draft: Draft) -> None:
        """Fill in the names that were read since."""
