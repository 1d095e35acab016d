"""C code folds waits into cells as plain Python does."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from msgspec.structs import replace
from support import reference_cells
from support.reference_cells import CellKey
from support.seeds import seeds
from support.shared_file import record
from unit.builders.time_lines import BEGIN_NS, MS, some_waits, timed
from unit.builders.time_lines import record as wait_record

from locktop.collector.extensions.report import cell_folder
from locktop.collector.extensions.report.cell_folder import CellFolder, FoldedSeries
from locktop.collector.extensions.report.past_incident import byte_planes
from locktop.collector.model import Kind, TimedWait, WaitRecord, Window
from locktop.collector.native import lib
from locktop.collector.shm import slot_batch
from locktop.collector.shm.slot_batch import SlotBatch

CELL_NS = 20 * MS
COUNT = 50
WINDOW = Window(from_ns=BEGIN_NS, to_ns=BEGIN_NS + COUNT * CELL_NS, count=COUNT)


def folder() -> CellFolder:
    return CellFolder(BEGIN_NS, WINDOW.to_ns, CELL_NS)


def folded(waits: list[TimedWait]) -> list[FoldedSeries]:
    made = folder()
    made.add_waits(waits)
    return list(made.folded())


def unpacked(series: list[FoldedSeries]) -> Counter[CellKey]:
    """Return the microseconds of each cell, after the way through the bytes of the page."""
    steps, values = (
        reference_cells.numbers(byte_planes(b"".join(getattr(part, name) for part in series)))
        for name in ("steps", "values")
    )
    return reference_cells.unpacked(
        [part.series for part in series], steps, values, CELL_NS // 1000
    )


def assert_equal(series: list[FoldedSeries], records: list[WaitRecord]) -> None:
    """Each cell is right to a microsecond, and so is each sum of a series."""
    expected = reference_cells.sums(records, WINDOW)
    found = unpacked(series)
    rests = {}
    for key in expected.keys() | found.keys():
        difference = found[key] * 1000 - expected[key]
        assert abs(difference) < 1000, key
        rests[key[:3]] = rests.get(key[:3], 0) + difference
    assert all(-1000 < rest <= 0 for rest in rests.values())


def test_random_waits_fold_as_the_reference_does() -> None:
    for seed in seeds(100):
        waits = some_waits(seed)
        contended = [wait.record for wait in waits if not wait.idle and wait.record.wait_ns]
        assert_equal(folded(waits), contended)


def test_records_of_rings_fold_as_decoded_ones_do() -> None:
    for seed in seeds(50):
        chosen = random.Random(seed)
        hz = chosen.choice((1e9, 2.4e9, 19.2e6))
        begin = 10**14
        kinds = (lib.LT_KIND_MUTEX, lib.LT_KIND_RWLOCK | lib.LT_KIND_SHARED)
        slots = [
            record(
                type=chosen.choice((lib.LT_RECORD_WAIT, lib.LT_RECORD_TIMEOUT, lib.LT_RECORD_HOLD)),
                kind=kinds[lock - 1],
                tid=chosen.randint(1, 3),
                lock=lock,
                stack=chosen.randint(1, 2),
                start=begin + round(chosen.uniform(-0.1, 1.1) * hz),
                wait=round(chosen.choice((0.0, 1e-6, chosen.expovariate(20))) * hz),
            )
            for lock in (1, 2) * 30
        ]
        signal = record(type=lib.LT_RECORD_SIGNAL, start=begin, wait=10**9)
        batch = SlotBatch(
            ticks=begin, time_ns=BEGIN_NS, hz=hz, lost=0, records=b"".join([*slots, signal])
        )
        made = folder()
        made.add_batch(slot_batch.pack(batch))
        assert_equal(list(made.folded()), [one for one in slot_batch.decode(batch) if one.wait_ns])


def test_a_long_wait_is_few_entries() -> None:
    (series,) = folded(timed(wait_record(7, 5, 600)))
    assert series.series.count == 3
    assert series.kind is Kind.MUTEX
    assert_equal([series], [wait_record(7, 5, 600)])


def test_waits_without_a_microsecond_add_up() -> None:
    waits = [wait_record(7, number, 0.0004) for number in range(0, 1000, 2)]
    (series,) = folded(timed(*waits))
    assert_equal([series], waits)


def test_stacks_of_scans_keep_their_large_numbers() -> None:
    (series,) = folded(timed(wait_record(7, 5, 6, stack=(1 << 33) + 5)))
    assert series.series.stack == (1 << 33) + 5


def test_forged_records_are_left_out_or_cut() -> None:
    most = (1 << 64) - 1
    slots = b"".join(
        record(tid=tid, lock=1, start=start, wait=wait)
        for tid, (start, wait) in enumerate([(0, most), (most, most), (1 << 63, 1), (5, 1 << 63)])
    )
    for hz in (1.0, 1e9, 1e12):
        made = folder()
        made.add_batch(
            SlotBatch(ticks=10**9, time_ns=BEGIN_NS + 10**9, hz=hz, lost=0, records=slots)
        )
        for part in made.folded():
            assert sum(unpacked([part]).values()) <= COUNT * CELL_NS // 1000


@pytest.mark.parametrize(
    "changes", [{"hz": 0.0}, {"hz": float("nan")}, {"ticks": -1}, {"time_ns": 1 << 70}]
)
def test_a_batch_with_an_impossible_clock_is_left_out(changes: dict[str, float]) -> None:
    batch = SlotBatch(ticks=10**9, time_ns=BEGIN_NS, hz=1e9, lost=0, records=record(wait=10**9))
    made = folder()
    made.add_batch(replace(batch, **changes))
    assert not list(made.folded())


def test_waits_of_scans_may_have_any_number() -> None:
    plain = wait_record(7, 5, 6)
    waits = [
        replace(plain, tid=1 << 40, lock=1 << 60),
        replace(plain, began_ns=-(1 << 80)),
        replace(plain, tid=8, wait_ns=1 << 90),
        replace(plain, tid=9, began_ns=1 << 80),
    ]
    numbers = [(part.series.tid, part.series.lock) for part in folded(timed(*waits))]
    assert numbers == [(8, 1), (0, 1 << 60)]


def test_too_many_entries_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_folder, "MAX_ENTRIES", 5)
    monkeypatch.setattr(cell_folder, "MERGED", 1)
    made = folder()
    for number in range(9):
        made.add_waits(timed(wait_record(number, 20 * number, 1)))
    assert made.is_full
    assert 5 <= len(list(made.folded())) < 9
