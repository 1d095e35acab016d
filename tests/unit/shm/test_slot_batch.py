"""Packed slots: each record comes back, and bytes from a stranger cost an error line."""

from __future__ import annotations

import contextlib
import random

import pytest
from msgspec.structs import replace
from support.shared_file import mark, record

from locktop.collector.errors import LocktopError
from locktop.collector.model import MarkRecord
from locktop.collector.native import lib
from locktop.collector.shm import slot_batch
from locktop.collector.shm.slot_batch import SlotBatch

_LIMITS = {"tid": 32, "lock": 32, "stack": 32, "holder": 32, "start": 64, "wait": 64}
_LIMITS |= {"hold": 64, "site": 64}


def batch(records: bytes) -> SlotBatch:
    return SlotBatch(ticks=10**12, time_ns=10**18, hz=1e9, lost=0, records=records)


def any_record(chosen: random.Random) -> bytes:
    """A record whose numbers have any number of bits."""
    values = {name: chosen.getrandbits(chosen.randint(0, bits)) for name, bits in _LIMITS.items()}
    types = (lib.LT_RECORD_WAIT, lib.LT_RECORD_TIMEOUT, lib.LT_RECORD_HOLD)
    return record(type=chosen.choice(types), kind=chosen.randrange(16), **values)


@pytest.mark.parametrize("count", [1, 2, 7, 1000])
def test_packed_slots_come_back_as_they_were(count: int) -> None:
    chosen = random.Random(count)
    whole = batch(b"".join(any_record(chosen) for _ in range(count)))
    packed = slot_batch.pack(whole)
    assert packed.packed == count
    assert slot_batch.slots(packed) == whole.records
    assert list(slot_batch.decode(packed)) == list(slot_batch.decode(whole))


def test_the_largest_numbers_fit() -> None:
    most = record(**{name: (1 << bits) - 1 for name, bits in _LIMITS.items()})
    whole = batch((most + record()) * 100)
    assert slot_batch.slots(slot_batch.pack(whole)) == whole.records


def test_a_thread_that_takes_one_lock_again_and_again_needs_few_bytes() -> None:
    records = [record(tid=9, lock=4, start=10**15 + 700 * n, hold=90) for n in range(1000)]
    assert len(slot_batch.pack(batch(b"".join(records))).records) < 13 * 1000


def test_damaged_slots_are_left_out_when_packed() -> None:
    packed = slot_batch.pack(batch(record(tid=1) + bytes(64) + record(tid=2)))
    assert [one.tid for one in slot_batch.decode(packed)] == [1, 2]


def test_a_wake_of_a_futex_is_a_release() -> None:
    wake = record(type=lib.LT_RECORD_RELEASE, start=100, hold=40)
    found = list(slot_batch.decode(batch(wake + record(start=100, hold=40))))
    assert [(one.is_release, one.wait_ns) for one in found] == [(True, 0), (False, 0)]


def test_an_empty_batch_stays_empty() -> None:
    assert list(slot_batch.decode(slot_batch.pack(batch(b"")))) == []


def test_a_wrong_number_of_records_is_an_error() -> None:
    chosen = random.Random(1)
    packed = slot_batch.pack(batch(b"".join(any_record(chosen) for _ in range(50))))
    for wrong in (-1, 1, 49, 51, 1 << 20, 1 << 40):
        with pytest.raises(LocktopError, match="damaged"):
            list(slot_batch.decode(replace(packed, packed=wrong)))


def test_each_cut_and_each_flipped_bit_is_read_or_refused() -> None:
    chosen = random.Random(2)
    packed = slot_batch.pack(batch(b"".join(any_record(chosen) for _ in range(5))))
    cuts = [packed.records[:size] for size in range(len(packed.records))]
    for data in cuts:
        with pytest.raises(LocktopError, match="damaged"):
            list(slot_batch.decode(replace(packed, records=data)))
    for at in range(len(packed.records) * 8):
        flipped = bytearray(packed.records)
        flipped[at // 8] ^= 1 << at % 8
        with contextlib.suppress(LocktopError):
            assert len(list(slot_batch.decode(replace(packed, records=bytes(flipped))))) <= 5


def test_marks_are_no_records() -> None:
    assert slot_batch.pack(batch(mark(1, 5, b"deploy"))).packed == 0


def test_marks_have_absolute_times_and_harmless_texts() -> None:
    marks = mark(7, 10**12 - 5, b"commit") + mark(8, 10**12 - 3, b"a\x1bb\xff")
    found = slot_batch.decode_marks(replace(batch(b""), marks=marks), 0, 1 << 62)
    assert found == [
        MarkRecord(tid=7, time_ns=10**18 - 5, text="commit"),
        MarkRecord(tid=8, time_ns=10**18 - 3, text="a?b\ufffd"),
    ]


def test_the_marks_of_a_span_include_its_begin_alone() -> None:
    whole = replace(batch(b""), marks=b"".join(mark(1, 10**12 - n, b"m") for n in range(9)))
    found = slot_batch.decode_marks(whole, 10**18 - 6, 10**18 - 3)
    assert sorted(10**18 - one.time_ns for one in found) == [4, 5, 6]


def test_damaged_marks_are_left_out() -> None:
    good = mark(7, 10**12, b"good")
    for at in (0, 1, 2, 7, 16, 17, 62, 63):
        bad = good[:at] + bytes([good[at] ^ 0x40]) + good[at + 1 :]
        whole = replace(batch(b""), marks=bad + good + good[:9])
        assert [one.text for one in slot_batch.decode_marks(whole, 0, 1 << 62)] == ["good"]
    assert not slot_batch.decode_marks(replace(batch(b""), marks=good, hz=0.0), 0, 1 << 62)


def test_packing_keeps_the_marks_and_the_first_of_all_times() -> None:
    marks = mark(1, 50, b"m")
    for start, first, expected in ((90, 50, 50), (30, 50, 30)):
        whole = replace(batch(record(start=start)), marks=marks, first=first)
        packed = slot_batch.pack(whole)
        assert (packed.marks, packed.packed, packed.first) == (marks, 1, expected)


def test_a_batch_without_marks_has_the_time_of_its_records() -> None:
    marks = mark(1, 50, b"m")
    alone = slot_batch.drop_marks(replace(batch(b""), marks=marks, first=50))
    assert alone.is_empty
    assert alone.first == 0


def test_a_begin_after_the_copy_counts_as_the_moment_of_the_copy() -> None:
    """A damaged ring may name any begin, and the index of a recording has 64 bits for it."""
    packed = slot_batch.pack(batch(record(start=(1 << 64) - 1)))
    assert packed.first == (1 << 64) - 1
    assert slot_batch.first_ns(packed) == packed.time_ns
