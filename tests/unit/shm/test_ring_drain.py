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


def test_marks_and_damaged_slots_are_left_out(ring: Ring) -> None:
    drain = RingDrain(ring.memory)
    ring.write(4)
    for number, slot in ((1, mark(1, 5, b"deploy")), (2, bytes(64))):
        os.pwrite(ring.memory.fd, slot, ring.block.ring + number * lib.LT_RECORD_SIZE)
    drained = drain.take(0.0)
    assert starts(drained) == [0, 3]
    assert drained.slots.lost == 1


def test_long_waits_are_picked_out(ring: Ring) -> None:
    drain = RingDrain(ring.memory)
    ring.write(3)
    # A tick of this clock is far shorter than a second.
    slot = record(tid=1, start=77, wait=1 << 60)
    os.pwrite(ring.memory.fd, slot, ring.block.ring + 1 * lib.LT_RECORD_SIZE)
    drained = drain.take(0.0)
    assert len(starts(drained)) == 3
    assert slot_batch.slots(drained.long_waits) == slot


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
    monkeypatch.setattr(ring_drain, "CAPACITY", 8)
    ring = Ring(tmp_path, 64)
    ring.write(20)
    drain = RingDrain(ring.memory, first_calls=2)
    ring.write(3)
    found = []
    while drain.has_more:
        found.append(starts(drain.take(0.0)))
    assert found == [list(range(8)), list(range(8, 16)), list(range(16, 23))]
    drain.close()
