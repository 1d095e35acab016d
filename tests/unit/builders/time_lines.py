"""Builders of time lines: records, scans, and random pasts of a process."""

from __future__ import annotations

import random

from unit.builders import records

from locktop.collector.model import (
    Held,
    Kind,
    LaneState,
    Notable,
    ScanSample,
    Snapshot,
    ThreadSample,
    ThreadState,
    TimedWait,
    Wait,
    WaitRecord,
)

#: A whole second, so that times in texts are easy to read: 2026-11-21 03:12:45 UTC.
BEGIN_NS = 1_795_230_765_000_000_000
MS = 1_000_000


def record(
    tid: int,
    began_ms: float,
    wait_ms: float,
    hold_ms: float | None = None,
    lock: int = 1,
    **more: object,
) -> WaitRecord:
    """Return a record; times are milliseconds after BEGIN_NS."""
    values: dict[str, object] = {
        "kind": Kind.MUTEX, "stack": 1, "holder": 0, "site": 0x401100,
    }  # fmt: skip
    values.update(more)
    return WaitRecord(
        tid=tid,
        lock=lock,
        began_ns=at(began_ms),
        wait_ns=round(wait_ms * MS),
        hold_ns=round(hold_ms * MS) if hold_ms is not None else None,
        **values,  # type: ignore[arg-type]
    )


def at(milliseconds: float) -> int:
    """Return the time so many milliseconds after BEGIN_NS."""
    return BEGIN_NS + round(milliseconds * MS)


def timed(*found: WaitRecord, idle: bool = False) -> list[TimedWait]:
    """Return records as waits, in order of their begin."""
    order = sorted(found, key=lambda one: one.began_ns)
    return [TimedWait(record=one, idle=idle) for one in order]


def scan(
    milliseconds: float,
    *tids: int,
    is_sampled: bool = False,
    state: LaneState = LaneState.RUNNING,
    waits: dict[int, Wait] | None = None,
    holds: dict[int, Held] | None = None,
) -> ScanSample:
    """Return a scan of these threads."""
    waits, holds = waits or {}, holds or {}
    return ScanSample(
        time_ns=at(milliseconds),
        is_sampled=is_sampled,
        lost_records=0,
        threads={
            tid: ThreadSample(
                name=f"t{tid}",
                state=state,
                wait=waits.get(tid),
                holds=(holds[tid],) if tid in holds else (),
            )
            for tid in tids
        },
    )


def some_waits(seed: int, count: int = 60, span_ms: int = 1000) -> list[TimedWait]:
    """Return random waits and holds of five threads, which may overlap in any way."""
    chosen = random.Random(seed)
    found = []
    for _ in range(count):
        hold = chosen.choice((None, chosen.expovariate(1 / 20)))
        wait = chosen.choice((0.0, 1e-6, chosen.expovariate(1 / 30)))
        found.append(
            record(
                chosen.randint(1, 5),
                chosen.uniform(-50, span_ms),
                wait,
                hold,
                lock=chosen.randint(1, 3),
            )
        )
    return [
        TimedWait(record=one, idle=chosen.random() < 0.2)
        for one in sorted(found, key=lambda one: one.began_ns)
    ]


class FixedPast:
    """A past of a process that a test builds. See Moments."""

    def __init__(
        self,
        snapshots: dict[int, Snapshot],
        found: list[WaitRecord] | None = None,
        notables: list[Notable] | None = None,
    ) -> None:
        self.snapshots = dict(sorted(snapshots.items()))
        self.found = found or []
        self._notables = notables or []

    def add_notable(self, notable: Notable) -> None:
        """Add an alert or a mark."""
        self._notables.append(notable)

    def times_ns(self) -> list[int]:
        """See Moments."""
        return list(self.snapshots)

    def snapshot_at(self, time_ns: int) -> Snapshot:
        """See Moments."""
        times = self.times_ns()
        return self.snapshots[max([one for one in times if one <= time_ns], default=times[0])]

    def notables(self) -> list[Notable]:
        """See Moments."""
        return self._notables

    def records(self, from_ns: int, to_ns: int) -> list[WaitRecord]:
        """See Moments."""
        return [one for one in self.found if one.began_ns < to_ns and one.end_ns >= from_ns]


def relay(seconds: int = 10) -> FixedPast:
    """Return the past of two workers and a logger: each 100 ms lock 1 goes from one to the other.

    A worker waits 60 ms, then holds the lock for 100 ms. The logger waits 5 ms for lock 2 once in
    a second.
    """
    found = []
    for number in range(seconds * 10):
        tid = 4712 + number % 2
        begin = number * 100.0
        found.append(record(tid, begin - 60, 60, 100, holder=4712 + (number + 1) % 2))
    found += [
        record(4714, second * 1000.0 + 500, 5, 1, lock=2, stack=2, holder=4712)
        for second in range(seconds)
    ]
    base = records.snapshot(
        threads=tuple(
            records.thread(tid, name, ThreadState.RUNNING)
            for tid, name in ((4712, "worker-0"), (4713, "worker-1"), (4714, "logger"))
        ),
        locks=(records.lock(1, "journal"), records.lock(2, "cache")),
    )
    times = {at(500.0 * number): base for number in range(2 * seconds + 1)}
    return FixedPast(times, sorted(found, key=lambda one: one.began_ns))
