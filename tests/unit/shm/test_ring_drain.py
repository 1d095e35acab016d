"""The drain of the rings: each record once, what was overwritten is counted."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import msgspec
import pytest
from support.shared_file import mark, record
from unit.shm.test_event_ring import Ring

from locktop.collector import native
from locktop.collector.errors import LocktopError
from locktop.collector.native import lib
from locktop.collector.shm import ring_drain, slot_batch
from locktop.collector.shm.ring_drain import Drained, RingDrain
from locktop.collector.shm.slot_batch import SlotBatch


def starts(drained: Drained) -> list[int]:
    """The numbers of the records: Ring.write() gives record n the start n."""
    return [int.from_bytes(slot[24:32], "big") for slot in _slots(slot_batch.slots(drained.slots))]


def _slots(data: bytes) -> list[bytes]:
    return [data[at : at + lib.LT_RECORD_SIZE] for at in range(0, len(data), lib.LT_RECORD_SIZE)]


@pytest.fixture
def ring(tmp_path: Path) -> Ring:
    """A ring of sixteen records."""
    return Ring(tmp_path, 16)


def damage(ring: Ring) -> None:
    """Let the ring lie outside of the file."""
    at = ring.file.offset_of(ring.block) + native.offset_of("struct lt_thread", "ring")
    os.pwrite(ring.memory.fd, (1 << 40).to_bytes(8, "little"), at)


def test_each_record_is_taken_once(ring: Ring) -> None:
    ring.write(5)
    drain = RingDrain(ring.memory)
    assert starts(drain.take(0.0)) == [0, 1, 2, 3, 4]
    assert starts(drain.take(0.0)) == []
    ring.write(14)
    drained = drain.take(0.0)
    assert starts(drained) == list(range(5, 19))
    assert drained.slots.lost == 0


def test_overwritten_records_are_counted(ring: Ring) -> None:
    drain = RingDrain(ring.memory)
    ring.write(40)
    drained = drain.take(0.0)
    assert starts(drained) == list(range(25, 40))
    assert drained.slots.lost == 25
    assert drain.take(0.0).slots.lost == 0


def test_what_was_overwritten_before_the_drain_is_not_lost(ring: Ring) -> None:
    ring.write(40)
    drained = RingDrain(ring.memory).take(0.0)
    assert starts(drained) == list(range(25, 40))
    assert drained.slots.lost == 0


def put(ring: Ring, number: int, slot: bytes) -> None:
    """Overwrite a record of the ring."""
    os.pwrite(ring.memory.fd, slot, ring.block.ring + number * lib.LT_RECORD_SIZE)


def test_damaged_slots_are_left_out(ring: Ring) -> None:
    drain = RingDrain(ring.memory)
    ring.write(6)
    put(ring, 2, bytes(64))
    put(ring, 3, mark(1, 5, b"deploy")[:-1] + b"x")
    drained = drain.take(0.0)
    assert starts(drained) == [0, 1, 4, 5]
    assert (drained.slots.lost, drained.slots.marks) == (2, b"")


def test_marks_come_beside_the_records(ring: Ring) -> None:
    drain = RingDrain(ring.memory)
    ring.write(4)
    marks = [mark(1, 3, b"deploy"), mark(1, 7, b"x" * 44)]
    put(ring, 1, marks[0])
    put(ring, 3, marks[1])
    drained = drain.take(0.0)
    assert starts(drained) == [0, 2]
    assert (drained.slots.lost, drained.slots.marks) == (0, b"".join(marks))
    ring.write(1)
    drained = drain.take(0.0)
    assert (starts(drained), drained.slots.marks) == ([4], b"")


def test_marks_alone_are_a_batch_with_the_time_of_the_first_one(ring: Ring) -> None:
    ring.write(2)
    put(ring, 0, mark(1, 9, b"late"))
    put(ring, 1, mark(1, 4, b"early"))
    slots = RingDrain(ring.memory).take(0.0).slots
    assert (slots.packed, slots.mark_count, slots.first) == (0, 2, 4)
    assert not slots.is_empty


def test_the_first_of_marks_and_records_is_known(ring: Ring) -> None:
    drain = RingDrain(ring.memory)
    ring.write(12)
    drain.take(0.0)
    ring.write(2)
    put(ring, 13, mark(1, 11, b"before"))
    assert drain.take(0.0).slots.first == 11
    ring.write(2)
    put(ring, 15, mark(1, 99, b"later"))
    assert drain.take(0.0).slots.first == 14


def test_overwritten_marks_are_counted(ring: Ring) -> None:
    drain = RingDrain(ring.memory)
    ring.write(40)
    for number in range(16):
        put(ring, number, mark(1, number, b"commit"))
    slots = drain.take(0.0).slots
    assert (slots.packed, slots.mark_count, slots.lost) == (0, 15, 25)


def test_long_waits_are_picked_out(ring: Ring) -> None:
    drain = RingDrain(ring.memory)
    ring.write(3)
    # A tick of this clock is far shorter than a second.
    slot = record(tid=1, start=77, wait=1 << 60)
    os.pwrite(ring.memory.fd, slot, ring.block.ring + 1 * lib.LT_RECORD_SIZE)
    drained = drain.take(0.0)
    assert len(starts(drained)) == 3
    assert slot_batch.slots(drained.long_waits) == slot


def test_long_waits_from_before_the_oldest_record_are_there(ring: Ring) -> None:
    ring.write(40)
    ring.note_long(3, 20)
    drain = RingDrain(ring.memory)
    assert sorted(starts(drain.take(0.0))) == [3, 20, *range(25, 40)]
    ring.note_long(30, at=2)
    assert starts(drain.take(0.0)) == []


def test_a_long_wait_in_the_ring_is_taken_once(ring: Ring) -> None:
    drain = RingDrain(ring.memory)
    ring.write(5)
    ring.note_long(2)
    assert starts(drain.take(0.0)) == [0, 1, 2, 3, 4]
    ring.write(1)
    ring.note_long(4, at=1)  # the thread wrote the entry after the drain took the record
    assert starts(drain.take(0.0)) == [5]
    ring.note_long(6, at=2)
    assert starts(drain.take(0.0)) == []
    ring.write(1)
    assert starts(drain.take(0.0)) == [6]


def test_a_long_wait_that_was_overwritten_meanwhile_is_not_lost(ring: Ring) -> None:
    drain = RingDrain(ring.memory)
    ring.write(40)
    ring.note_long(7, 24, 39)
    drained = drain.take(0.0)
    assert starts(drained) == [*range(25, 40), 7, 24]
    assert drained.slots.lost == 23
    ring.write(30)
    ring.note_long(44, at=0)
    drained = drain.take(0.0)
    assert starts(drained) == [*range(55, 70), 44]
    assert drained.slots.lost == 14


def test_of_many_long_waits_from_before_those_in_contention_are_picked_out(tmp_path: Path) -> None:
    ring = Ring(tmp_path, 4096)
    ring.write(3000)
    for number in range(3000):
        kind = lib.LT_KIND_MUTEX if number in (1, 2999) else lib.LT_KIND_COND
        slot = record(tid=1, kind=kind, start=number, wait=1 << 60)
        os.pwrite(ring.memory.fd, slot, ring.block.ring + number * lib.LT_RECORD_SIZE)
    found = _slots(slot_batch.slots(RingDrain(ring.memory).take(0.0).long_waits))
    assert len(found) == 1000
    kinds = [slot[2] for slot in found]
    assert kinds.count(lib.LT_KIND_MUTEX) == 2


def test_damaged_long_waits_are_left_out(ring: Ring) -> None:
    ring.write(40)
    ring.note_long(3, 4, 1 << 60)
    os.pwrite(ring.memory.fd, b"\xc1", ring.block.long_waits + 16)
    drain = RingDrain(ring.memory)
    assert starts(drain.take(0.0)) == [*range(25, 40), 4]
    assert starts(drain.take(0.0)) == []


def test_another_program_follows_after_the_rest_of_the_first(ring: Ring, tmp_path: Path) -> None:
    (tmp_path / "second").mkdir()
    second = Ring(tmp_path / "second", 16)
    drain = RingDrain(ring.memory)
    drain.follow(second.memory)
    ring.write(2)
    second.write(3)
    taken = [starts(drain.take(0.0)) for _ in range(3)]
    assert taken == [[0, 1], [0, 1, 2], []]
    drain.close()


def test_a_ring_behind_the_end_of_the_file_is_an_error(ring: Ring) -> None:
    drain = RingDrain(ring.memory)
    ring.write(3)
    damage(ring)
    with pytest.raises(LocktopError, match="outside"):
        drain.take(0.0)


def test_long_waits_behind_the_end_of_the_file_are_an_error(ring: Ring) -> None:
    drain = RingDrain(ring.memory)
    ring.note_long(3)
    at = ring.file.offset_of(ring.block) + native.offset_of("struct lt_thread", "long_waits")
    os.pwrite(ring.memory.fd, (1 << 40).to_bytes(8, "little"), at)
    with pytest.raises(LocktopError, match="outside"):
        drain.take(0.0)


def test_a_damaged_head_gives_a_number_that_a_recording_has_room_for(ring: Ring) -> None:
    drain = RingDrain(ring.memory)
    at = ring.file.offset_of(ring.block) + native.offset_of("struct lt_thread", "ring_head")
    os.pwrite(ring.memory.fd, ((1 << 64) - 1).to_bytes(8, "little"), at)
    slots = drain.take(0.0).slots
    assert 0 < slots.lost < 1 << 63
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(slots), type=SlotBatch) == slots


@pytest.mark.parametrize("is_noticed_before", [False, True])
def test_another_program_follows_after_a_damaged_file(
    ring: Ring, tmp_path: Path, is_noticed_before: bool
) -> None:
    (tmp_path / "second").mkdir()
    second = Ring(tmp_path / "second", 16)
    drain = RingDrain(ring.memory)
    ring.write(2)
    damage(ring)
    if is_noticed_before:
        with pytest.raises(LocktopError, match="outside"):
            drain.take(0.0)
        assert starts(drain.take(0.0)) == []
        assert not drain.has_more
    drain.follow(second.memory)
    second.write(3)
    if not is_noticed_before:
        with pytest.raises(LocktopError, match="outside"):
            drain.take(0.0)
    assert drain.has_more
    assert starts(drain.take(10.0 if is_noticed_before else 0.0)) == [0, 1, 2]
    drain.close()


def test_another_program_ends_the_wait_for_records_of_a_damaged_file(
    ring: Ring, tmp_path: Path
) -> None:
    (tmp_path / "second").mkdir()
    second = Ring(tmp_path / "second", 16)
    drain = RingDrain(ring.memory)
    ring.write(2)
    damage(ring)
    with pytest.raises(LocktopError, match="outside"):
        drain.take(0.0)
    for wake in (drain.hurry, lambda: drain.follow(second.memory)):
        waiting = threading.Thread(target=drain.take, args=(1e6,), daemon=True)
        waiting.start()
        wake()
        waiting.join(60.0)
        assert not waiting.is_alive()
    drain.close()


def test_a_damaged_file_leaves_no_descriptor(ring: Ring, tmp_path: Path) -> None:
    (tmp_path / "second").mkdir()
    second = Ring(tmp_path / "second", 16)
    ring.write(2)
    second.write(2)
    damage(second)
    drain = RingDrain(ring.memory)
    before = os.listdir("/proc/self/fd")
    with pytest.raises(LocktopError, match="outside"):
        RingDrain(second.memory)
    drain.follow(second.memory)
    assert os.listdir("/proc/self/fd") == before
    assert starts(drain.take(0.0)) == [0, 1]
    drain.close()


def test_a_drain_says_when_the_rings_are_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ring_drain, "CAPACITY", 8 + lib.LT_LONG_WAITS)
    ring = Ring(tmp_path, 64)
    ring.write(20)
    drain = RingDrain(ring.memory, first_calls=2)
    ring.write(3)
    found = []
    while drain.has_more:
        found.append(starts(drain.take(0.0)))
    assert found == [list(range(8)), list(range(8, 16)), list(range(16, 23))]
    drain.close()


def test_a_batch_has_a_bounded_number_of_marks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ring_drain, "CAPACITY", 8 + lib.LT_LONG_WAITS)
    capacity = 8 + lib.LT_LONG_WAITS
    ring = Ring(tmp_path, 256)
    drain = RingDrain(ring.memory, first_calls=2)
    ring.write(3 * capacity)
    for number in range(3 * capacity):
        put(ring, number, mark(1, number, b"commit"))
    found = b""
    while drain.has_more:
        slots = drain.take(0.0).slots
        assert slots.mark_count <= capacity
        found += slots.marks
    times = [int.from_bytes(found[at + 8 : at + 16], "big") for at in range(0, len(found), 64)]
    assert times == list(range(3 * capacity))
    drain.close()
