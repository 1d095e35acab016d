"""The two sides of a comparison with their figures, and the changes between them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from locktop.collector.extensions.diff.intervals import Interval
from locktop.collector.model import Kind

_NUMBER = re.compile(r"0x[0-9a-f]+|\d+")


def replace_numbers(text: str) -> str:
    """Return a text with ``#`` for each number, so that two runs of a program have one text."""
    return _NUMBER.sub("#", text)


class MatchKey(Struct, frozen=True):
    """The traits by which a lock of one side is that of the other.

    The name of a lock without a name of its own has the place where the program made it.
    """

    kind: Kind
    name: str  # with # for numbers


class LockGroup(Struct, frozen=True):
    """The locks of one side with one key."""

    count: int
    names: tuple[str, ...]  # different ones


class Figures(Struct):
    """The figures of the locks of one key, or of all locks, in one piece of a span.

    None: not measured, or without meaning for these locks.
    """

    wait_s: float = 0.0  # in contention
    contended: float | None = 0.0  # None if there are idle waits: nobody counts these apart
    acquisitions: float | None = 0.0
    hold_s: float | None = 0.0

    def add(self, other: Figures) -> None:
        """Add the figures of further locks."""
        self.wait_s += other.wait_s
        self.contended = _sum(self.contended, other.contended)
        self.acquisitions = _sum(self.acquisitions, other.acquisitions)
        self.hold_s = _sum(self.hold_s, other.hold_s)

    @property
    def is_used(self) -> bool:
        """Whether a thread took one of the locks, or waited for it."""
        return bool(self.wait_s or self.contended or self.acquisitions)


def _sum(first: float | None, second: float | None) -> float | None:
    return first + second if first is not None and second is not None else None


class Piece(Struct, frozen=True):
    """A piece of a span between two snapshots, or all the time of one snapshot."""

    duration_s: float
    locks: Mapping[MatchKey, Figures]  # those that were used
    marks: Mapping[str, int]  # of the program: how many, by their text with # for numbers


class Side(Struct, frozen=True):
    """One of the two that are compared."""

    title: str  # what the user named
    comm: str
    pid: int
    duration_s: float
    locks: Mapping[MatchKey, LockGroup]  # all of them
    pieces: Sequence[Piece]
    is_sampled: bool = False
    marks_lost: bool = False  # some marks were overwritten: nobody knows how many there were
    notes: tuple[str, ...] = ()


class LockMeasure(StrEnum):
    """The figures that are compared. The value is the word in JSON."""

    WAIT = "wait_s"
    CONTENDED = "contended"
    MEAN_WAIT = "mean_wait_s"
    ACQUISITIONS = "acquisitions"
    HOLD = "hold_s"
    MEAN_HOLD = "mean_hold_s"
    TRANSACTIONS = "transactions"


class FigureChange(Struct, frozen=True):
    """One figure on both sides. A mean is that of one wait or hold, all others are rates."""

    measure: LockMeasure
    before: float
    after: float
    is_per_transaction: bool = False  # else per second
    interval: Interval | None = None  # of ``ratio``
    is_large: bool = False  # a reader would care about so much, if it is no chance

    @property
    def may_be_chance(self) -> bool:
        """Whether the interval has 1, which is no change. Without an interval: False."""
        return self.interval is not None and not self.interval.has_change

    @property
    def is_worth_a_line(self) -> bool:
        """Whether a reader would care."""
        return self.is_large and not self.may_be_chance

    @property
    def is_mean(self) -> bool:
        """Whether the figure is that of one wait or one hold, and no rate."""
        return self.measure in (LockMeasure.MEAN_WAIT, LockMeasure.MEAN_HOLD)

    @property
    def ratio(self) -> float | None:
        """The figure of B as a multiple of that of A; None if that is 0."""
        ratio = self.after / self.before if self.before > 0 else math.inf
        return ratio if math.isfinite(ratio) else None


class LockChanges(Struct, frozen=True):
    """The locks of one key on both sides. The figures of a side without the lock are 0."""

    key: MatchKey | None  # None: all locks together
    name: str  # clean, for people
    counts: tuple[int, int]  # locks of each side
    changes: tuple[FigureChange, ...]  # per second first, in the order of LockMeasure

    @property
    def worthy(self) -> tuple[FigureChange, ...]:
        """The changes that a reader would care about."""
        return tuple(change for change in self.changes if change.is_worth_a_line)

    def change(self, measure: LockMeasure) -> FigureChange | None:
        """Return the change of a measure per second; None if a side did not measure it."""
        return next(
            (
                change
                for change in self.changes
                if change.measure is measure and not change.is_per_transaction
            ),
            None,
        )


class SideComparison(Struct, frozen=True):
    """Everything that differs between two sides."""

    before: Side
    after: Side
    transaction: str | None  # the text of the marks that both sides have; None: there is none
    totals: LockChanges
    locks: tuple[LockChanges, ...]  # of both sides, the largest change of waiting first
    new: tuple[LockChanges, ...]  # used in B, and not there in A; the most waiting first
    gone: tuple[LockChanges, ...]  # the other way round

    @property
    def has_changes(self) -> bool:
        """Whether there is anything to say."""
        return bool(
            self.totals.worthy or any(lock.worthy for lock in self.locks) or self.new or self.gone
        )


class Difference(Struct, frozen=True):
    """The text of a comparison, as a part of a snapshot. The snapshot is the later side."""

    before: str  # the earlier side, as the user named it
    lines: tuple[str, ...]
