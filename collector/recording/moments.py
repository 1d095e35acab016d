"""The past of a process: the interface of the memory of a live screen and of a recording."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from locktop.collector.model import MarkRecord, Notable, SignalRecord, Snapshot, WaitRecord

if TYPE_CHECKING:
    from locktop.collector.shm.slot_batch import SlotBatch


class EarlierWaits(Enum):
    """Says whether the long waits from before the first snapshot are known."""

    KNOWN = 0  # all of them
    OVERWRITTEN = 1  # some: the process had more than its memory has room for
    UNRECORDED = 2  # none: nothing in the process records waits


class Moments(Protocol):
    """The past of one process. Times are nanoseconds since 1970, UTC."""

    def times_ns(self) -> Sequence[int]:
        """Return the times of all snapshots, the oldest first."""
        ...

    def snapshot_at(self, time_ns: int) -> Snapshot:
        """Return the newest snapshot at ``time_ns`` or before, or the oldest of all.

        Raises:
            LocktopError: there is no snapshot, or it is damaged.
        """
        ...

    def notables(self) -> Sequence[Notable]:
        """Return the alerts and marks, the oldest first."""
        ...

    def records(self, from_ns: int, to_ns: int) -> Sequence[WaitRecord]:
        """Return the waits and holds that touch a span, in the order of their begin.

        Raises:
            LocktopError: the records are damaged.
        """
        ...


@runtime_checkable
class HasSignals(Protocol):
    """A past that has the signals and posts of the level ``all``."""

    def signals(self, from_ns: int, to_ns: int) -> Sequence[SignalRecord]:
        """Return the signals of a span, the oldest first. Raises LocktopError if damaged."""
        ...


@runtime_checkable
class HasBatches(Protocol):
    """A past that has its ring records as they were copied, for C code that sums them up."""

    def batches(self, from_ns: int, to_ns: int) -> Iterator[SlotBatch]:
        """Yield the batches with records of a span, and others. Raises LocktopError if damaged."""
        ...


@runtime_checkable
class HasMarks(Protocol):
    """A past that has each mark of the program."""

    def marks(self, from_ns: int, to_ns: int) -> Sequence[MarkRecord]:
        """Return the marks of a span, the oldest first. Raises LocktopError if damaged."""
        ...


@runtime_checkable
class TakesMarks(Protocol):
    """A past that the user's marks belong to."""

    def add_mark(self, mark: Notable) -> None:
        """Add a mark."""
        ...


@runtime_checkable
class KnowsEarlierWaits(Protocol):
    """A past of a process that lived before."""

    @property
    def earlier_waits(self) -> EarlierWaits: ...
