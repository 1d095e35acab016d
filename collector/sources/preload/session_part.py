"""The part of an extension in the session of a preloaded process: it reads the shared memory."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from locktop.collector.model import Draft, Frame
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.reader import Reading
from locktop.collector.shm.ring_drain import RingDrain
from locktop.collector.shm.segment import SharedMemory
from locktop.collector.sources.preload.stack_table import StackFrames
from locktop.collector.symbols.resolver import Resolver


class SessionContext(Struct, frozen=True):
    """One program of a preloaded process, with its readers."""

    pid: int
    own_pid: int  # in the pid namespace of the process
    memory: SharedMemory
    clock: Clock
    resolver: Resolver
    frames: StackFrames


class SessionPart:
    """Reads what an extension shows of one program. Each method may do nothing.

    A fault in build() or complete() is a note of the snapshot, and the scan goes on.
    """

    def build(self, draft: Draft, reading: Reading) -> None:
        """Fill in the section soon after the reading; request the names of functions."""

    def complete(self, draft: Draft, reading: Reading, is_last: bool) -> bool:
        """Fill in what needs locks, waits and holders, and the names that were read since.

        Args:
            draft: the scan.
            reading: the last one of the scan.
            is_last: whether the scan waits for all that there is to know.

        Returns:
            whether the draft refers to further stacks and call sites.
        """
        return False

    def start(self, drain: RingDrain, is_first_program: bool, *arguments: Any) -> None:
        """Begin work between the scans; see Source.start_part().

        Args:
            drain: the ring records from now on; the part closes it.
            is_first_program: False: the process has executed another program since the request.
            arguments: those of the request.
        """

    def end(self) -> None:
        """End this work, if there is any, and forget its results."""

    def frames(self, stack: int) -> tuple[Frame, ...]:
        """Return the frames of a stack with an id from native_stacks.SAMPLES_FIRST_ID on."""
        return ()
