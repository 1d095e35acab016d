"""The figures of one run, from records and a snapshot made by hand."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import pytest
from msgspec.structs import replace
from support.shared_file import record
from unit.builders import scenarios

from locktop.collector.extensions.gate.model import Quantity
from locktop.collector.extensions.gate.run_figures import HoldRecords, summarise
from locktop.collector.model import Kind, Snapshot
from locktop.collector.model.kinds import HELD_KINDS
from locktop.collector.shm.ring_drain import Drained, RingDrain
from locktop.collector.shm.slot_batch import SlotBatch, pack

SNAPSHOT = scenarios.normal()
LOCK = next(lock for lock in SNAPSHOT.locks if lock.kind in HELD_KINDS)
HZ = 1e9


def batch(*holds: tuple[int, int], lost: int = 0) -> SlotBatch:
    """Return the records of holds, each of a lock for so many ticks."""
    data = b"".join(record(lock=lock, hold=ticks) for lock, ticks in holds)
    return pack(SlotBatch(ticks=1, time_ns=1, hz=HZ, lost=lost, records=data))


class FakeDrain:
    """Gives away some batches, one a call."""

    def __init__(self, batches: Sequence[SlotBatch]) -> None:
        self._batches = list(batches)
        self.is_closed = False

    @property
    def has_more(self) -> bool:
        return bool(self._batches)

    def take(self, within_s: float, longest_pause_s: float = 0.0) -> Drained:
        empty = SlotBatch(ticks=1, time_ns=1, hz=HZ, lost=0, records=b"")
        slots = self._batches.pop(0) if self._batches else empty
        time.sleep(0)  # lets the other thread run
        return Drained(slots=slots, long_waits=empty)

    def hurry(self) -> None:
        pass

    def close(self) -> None:
        self.is_closed = True


def recorded(*batches: SlotBatch, max_records: int = 1000) -> HoldRecords:
    drain = FakeDrain(batches)
    records = HoldRecords(cast(RingDrain, drain), max_records)
    records.close()
    assert drain.is_closed
    return records


def named(*names: str, **fields: object) -> Snapshot:
    """Return a snapshot of mutexes with these names; the ids begin with 1."""
    locks = [
        replace(LOCK, id=number, name=name, kind=Kind.MUTEX, blame=(), **fields)
        for number, name in enumerate(names, 1)
    ]
    return replace(SNAPSHOT, locks=tuple(locks))


def test_all_records_of_a_process_are_counted() -> None:
    records = recorded(batch((1, 10), (1, 20), (2, 10), lost=3), batch((1, 10), lost=4))
    assert records.count() == ({(1, 10): 2, (1, 20): 1, (2, 10): 1}, HZ)
    assert (records.arrived, records.lost) == (4, 7)


def test_of_very_many_records_evenly_spread_batches_are_kept() -> None:
    records = recorded(*(batch((number, 5)) for number in range(1, 101)), max_records=10)
    kept = sorted(lock for lock, _ in records.count()[0])
    assert 8 <= len(kept) <= 21
    assert len({later - lock for lock, later in pairwise(kept)}) == 1
    assert records.arrived == 100


def test_locks_of_one_class_share_a_median() -> None:
    snapshot = named("shard[0]", "shard[1]", "other", wait_s=0.5, idle_s=0.0, acquisitions=10)
    run = summarise(snapshot, recorded(batch((1, 100), (2, 200), (2, 300), (3, 7))))
    shard = run.classes[Kind.MUTEX, "shard[]"]
    assert shard.values[Quantity.HOLD] == pytest.approx(200e-9)
    assert shard.values[Quantity.WAIT] == pytest.approx(0.05)
    assert shard.wait_s == 1.0
    assert run.classes[Kind.MUTEX, "other"].values[Quantity.HOLD] == pytest.approx(7e-9)


def test_the_name_of_a_class_has_no_line() -> None:
    snapshot = named("mutex made in put (cache.c:42)")
    run = summarise(snapshot, recorded(batch((1, 100))))
    assert set(run.classes) == {(Kind.MUTEX, "mutex made in put (cache.c)")}


def test_locks_without_a_name_are_counted_alone() -> None:
    run = summarise(named("mutex 0x7f00"), recorded(batch((1, 100), (9, 100))))
    assert (run.classes, run.nameless) == ({}, 2)


def test_a_run_without_waits_has_no_mean_wait() -> None:
    snapshot = named("g_lock", wait_s=0.0, idle_s=0.0)
    run = summarise(snapshot, recorded(batch((1, 100))))
    assert set(run.classes[Kind.MUTEX, "g_lock"].values) == {Quantity.HOLD}


def test_blame_goes_to_the_end_of_the_chain() -> None:
    run = summarise(SNAPSHOT, recorded())
    blame = sum(figures.blame_s for figures in run.classes.values())
    held = [lock for lock in SNAPSHOT.locks if lock.kind in HELD_KINDS]
    assert blame == pytest.approx(
        sum(charge.wait_s for lock in held for charge in lock.blame), rel=0.5
    )
