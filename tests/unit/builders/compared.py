"""Sides of a comparison, and a past of snapshots with marks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace
from unit.builders.records import lock, snapshot

from locktop.collector.extensions.diff.model import Figures, LockGroup, MatchKey, Piece, Side
from locktop.collector.model import (
    Kind,
    Lock,
    MarkRecord,
    Notable,
    Snapshot,
    WaitRecord,
)

SECOND = 10**9
BEGIN = 1_700_000_000 * SECOND
MUTEX = MatchKey(Kind.MUTEX, "cache_mu")


def figures(
    wait_s: float = 0.0, taken: float = 100.0, contended: float = 10.0, hold_s: float = 0.1
) -> Figures:
    return Figures(wait_s=wait_s, contended=contended, acquisitions=taken, hold_s=hold_s)


def side(
    pieces: Sequence[Mapping[MatchKey, Figures]],
    marks: Mapping[str, int] | None = None,
    **more: object,
) -> Side:
    """Return a side with pieces of a second, each with the same marks."""
    keys = dict.fromkeys(key for piece in pieces for key in piece)
    whole = Side(
        title="x.rec",
        comm="store",
        pid=4711,
        duration_s=float(len(pieces)),
        locks={key: LockGroup(1, (key.name,)) for key in keys},
        pieces=[Piece(1.0, piece, marks or {}) for piece in pieces],
    )
    return replace(whole, **more)


def scan(second: int, *locks: Lock, **more: object) -> Snapshot:
    """Return a snapshot some seconds after the counters began."""
    return replace(snapshot((), locks), duration_s=10.0 + second, **more)


def used_lock(second: int, name: str = "cache_mu", id: int = 1, **more: object) -> Lock:
    """Return a mutex that threads took 100 times in each second."""
    used = lock(
        id,
        name,
        acquisitions=100 * second,
        contended=10 * second,
        wait_s=0.2 * second,
        hold_s=0.5 * second,
    )
    return replace(used, **more)


class PastScans:
    """A past with a snapshot of each second; see Moments, HasMarks and KnowsLosses."""

    def __init__(
        self, scans: Sequence[Snapshot], marks: Sequence[MarkRecord] = (), lost: int = 0
    ) -> None:
        self._scans = scans
        self._marks = marks
        self._lost = lost

    def times_ns(self) -> Sequence[int]:
        return [BEGIN + second * SECOND for second in range(len(self._scans))]

    def snapshot_at(self, time_ns: int) -> Snapshot:
        second = (time_ns - BEGIN) // SECOND
        return self._scans[min(max(second, 0), len(self._scans) - 1)]

    def notables(self) -> Sequence[Notable]:
        return ()

    def records(self, from_ns: int, to_ns: int) -> Sequence[WaitRecord]:
        return ()

    def marks(self, from_ns: int, to_ns: int) -> Sequence[MarkRecord]:
        return [mark for mark in self._marks if from_ns <= mark.time_ns <= to_ns]

    def lost_records(self, from_ns: int, to_ns: int) -> int | None:
        return self._lost
