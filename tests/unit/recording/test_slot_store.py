"""The ring records of a memory in groups: all batches come back as they were."""

from __future__ import annotations

import random

from support.shared_file import mark, record

from locktop.collector.recording import slot_store
from locktop.collector.recording.slot_store import SlotStore
from locktop.collector.shm.slot_batch import SlotBatch

_SECOND = 1_000_000_000
_BEGIN = 1_790_000_000 * _SECOND


def _batch(second: int, count: int, marks: bytes = b"") -> SlotBatch:
    chosen = random.Random(second)
    ticks = (second + 100) * _SECOND
    raw = b"".join(
        record(tid=7, start=ticks - chosen.randrange(1, _SECOND), wait=chosen.randrange(1 << 20))
        for _ in range(count)
    )
    time_ns = _BEGIN + second * _SECOND
    return slot_store.dense(
        SlotBatch(ticks=ticks, time_ns=time_ns, hz=1e9, lost=0, records=raw, marks=marks)
    )


def _filled(counts: list[int]) -> tuple[SlotStore, list[SlotBatch]]:
    store, batches = SlotStore(), [_batch(number, count) for number, count in enumerate(counts)]
    for batch in batches:
        store.add(batch)
    return store, batches


def test_all_batches_come_back_in_their_order() -> None:
    marked = _batch(50, 1, marks=mark(tid=7, start=5, text=b"deploy"))
    store, batches = _filled([3] * 40)
    store.add(marked)
    assert list(slot_store.unpacked(store.all_parts())) == [*batches, marked]


def test_groups_take_fewer_bytes_than_batches() -> None:
    store, batches = _filled([20] * 160)
    alone = sum(len(slot_store.packed_alone(batch).packed) for batch in batches)
    assert store.size < alone
    assert len(store) < len(batches) / 10


def test_the_parts_of_a_span_have_all_batches_that_touch_it() -> None:
    store, batches = _filled([5] * 100)
    begin, end = _BEGIN + 30 * _SECOND, _BEGIN + 32 * _SECOND
    touching = [batch for batch in batches if begin <= batch.time_ns <= end]
    found = list(slot_store.unpacked(store.parts(begin, end)))
    assert [batch for batch in found if batch in touching] == touching
    assert len(found) < len(batches)


def test_what_is_forgotten_was_counted() -> None:
    store, batches = _filled([2] * 37)
    count = 0
    while len(store):
        count += store.forget_oldest().count
    assert count == 2 * len(batches)
    assert store.size == 0


def test_only_parts_from_before_a_time_are_forgotten() -> None:
    store, batches = _filled([2] * 40)
    store.forget_before(batches[20].time_ns)
    left = list(slot_store.unpacked(store.all_parts()))
    assert left == batches[40 - len(left) :]
    assert 20 <= len(left) < 40
    store.forget_before(batches[-1].time_ns + 1)
    assert not list(slot_store.unpacked(store.all_parts()))


def test_a_busy_process_has_small_groups() -> None:
    store, batches = _filled([20_000] * 4)
    assert len(store) == len(batches)
