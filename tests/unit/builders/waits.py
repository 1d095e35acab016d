"""Builders of waits: as the model has them, and as a source reports them between scans."""

from __future__ import annotations

from msgspec.structs import replace
from unit.builders import records, scenarios

from locktop.collector.model import CONTENTION_KINDS, Kind, Snapshot, ThreadState, Wait
from locktop.collector.sources.base import OngoingWait


def wait(seq: int = 1, kind: Kind = Kind.MUTEX, lock: int = 1, duration_s: float = 9.0) -> Wait:
    """A wait of the wait number ``seq`` of a thread."""
    idle = kind not in CONTENTION_KINDS
    return Wait(lock, kind, duration_s, (4714,), 1, 0x401100, seq, idle=idle)


def ongoing(
    holds: bool = False,
    seq: int = 1,
    kind: Kind = Kind.MUTEX,
    lock: int = 1,
    duration_s: float = 9.0,
) -> OngoingWait:
    """A wait that goes on; ``holds``: the waiter holds a lock."""
    return OngoingWait(lock, kind, duration_s, seq, holds, idle=kind not in CONTENTION_KINDS)


def waiting(**by_name: Wait) -> Snapshot:
    """A snapshot with threads named t1, t2, ... in these waits."""
    threads = tuple(
        records.thread(int(name[1:]), name, ThreadState.WAITING, waiting_for=one)
        for name, one in by_name.items()
    )
    return replace(scenarios.normal(), threads=threads)
