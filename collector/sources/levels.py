"""The levels at which the library can work in a process: what each does, and how to set one."""

from __future__ import annotations

from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from locktop.collector.errors import LocktopError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from locktop.collector.linux.target import Target
    from locktop.collector.shm.recording_claim import RecordingClaim
    from locktop.collector.shm.segment import SharedMemory


class Level(NamedTuple):  # no Struct: the help of the commands loads nothing large
    """One level. Each level does what the level before it does, and more."""

    name: str
    does: str
    costs: str  # times a plain pair of lock and unlock, without contention; about


LEVELS: tuple[Level, ...] = (
    Level("dormant", "nothing: the hooks only pass calls on", "1.0x"),
    Level("counting", "counters, holders and waits; no stacks, no records", "1.3x"),
    Level("contended", "also stacks, and a record of each wait (default)", "1.3x"),
    Level("blocks", "also a record of each hold that a thread waited for", "2.3x"),
    Level("all", "also a record of every other hold and signal", "3.8x"),
)
NAMES = tuple(level.name for level in LEVELS)


class ProcessLevel(NamedTuple):
    """The level of one process."""

    process: str  # pid and name: "1234 (store)"
    level: str  # one of NAMES


def description() -> str:
    """Return all levels, one a line, indented."""
    return "\n".join(f"  {level.name:<10} {level.costs:>4}  {level.does}" for level in LEVELS)


def read_level(pid: int) -> ProcessLevel:
    """Return the level of a process. Raises LocktopError where that cannot be read."""
    from locktop.collector.shm import control

    with opened_memory(pid) as (target, memory):
        return ProcessLevel(str(target), control.level_name(memory.control()))


def set_level(pid: int, name: str) -> ProcessLevel:
    """Set the level of a process, and return the level before.

    Args:
        pid: the process, which has loaded the library.
        name: one of NAMES.

    Raises:
        LocktopError: the level cannot be set.
    """
    from locktop.collector.shm import control

    with opened_memory(pid) as (target, memory):
        return ProcessLevel(str(target), control.set_level(memory, name))


def check_free(pid: int) -> None:
    """Raise LocktopError if another reader records all holds of a process."""
    from locktop.collector.shm import recording_claim
    from locktop.collector.shm.clock import Clock

    with opened_memory(pid) as (_, memory):
        recording_claim.check_free(memory, Clock(memory.header()), pid)


class AllRecorded:
    """Lets a process record each hold and signal between ``begin()`` and ``end()``.

    The level before comes back, but a level that a user sets meanwhile stays. If locktop is killed,
    the level before comes back after some seconds. A signal handler may raise an exception at any
    time, so ``begin()`` belongs inside the block that ``end()`` ends.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._memory: SharedMemory | None = None
        self._claim: RecordingClaim | None = None
        self.level_before = ""  # one of NAMES
        self.level_after = ""  # one of NAMES, read after the end; "" before

    def begin(self) -> None:
        """Set the level. Raises LocktopError if that fails, or if another reader has done so."""
        from locktop.collector.linux.target import find_process
        from locktop.collector.shm.clock import Clock
        from locktop.collector.shm.recording_claim import RecordingClaim
        from locktop.collector.sources import discover

        self._memory = memory = discover.open_memory(find_process(self._pid))
        self._claim = claim = RecordingClaim(memory, Clock(memory.header()), self._pid)
        self.level_before = claim.level()
        claim.take()

    def check(self) -> None:
        """Raise LocktopError if the process does not record all now."""
        if self._claim is not None:
            self._claim.check()

    def end(self) -> None:
        """Set the level before again, and read the level. Never raises LocktopError."""
        if self._claim is not None:
            self._claim.put_back()
            with suppress(LocktopError, OSError):
                self.level_after = self._claim.level()
        if self._memory is not None:
            self._memory.close()


@contextmanager
def opened_memory(pid: int) -> Iterator[tuple[Target, SharedMemory]]:
    """Open the shared memory of a process for the time of a block. Raises LocktopError."""
    from locktop.collector.linux.target import find_process
    from locktop.collector.sources import discover

    target = find_process(pid)
    with closing(discover.open_memory(target)) as memory:
        yield target, memory
