"""Ring records in a stream: all of them arrive, or a batch counts the lost ones."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from msgspec.structs import replace
from support.shared_file import mark, record
from unit.extensions.stream.test_stream_sender import Network
from unit.recording.test_recording import scans

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.stream import datagrams, stream_sender
from locktop.collector.extensions.stream.datagram_receiver import DatagramReceiver
from locktop.collector.extensions.stream.received_stream import ReceivedScan, ReceivedStream
from locktop.collector.extensions.stream.stream_frames import (
    RECORDS_OF_FRAME,
    FramePacker,
    FrameUnpacker,
    has_records,
)
from locktop.collector.extensions.stream.stream_intake import MAX_HELD_BYTES, StreamIntake
from locktop.collector.extensions.stream.stream_sender import (
    MAX_WAITING_BYTES,
    Outbox,
    StreamSender,
)
from locktop.collector.recording import frame_format
from locktop.collector.recording.frame_format import HEADER_SIZE, FrameType
from locktop.collector.shm import slot_batch
from locktop.collector.shm.slot_batch import SlotBatch

_NOW = 1_790_000_000_000_000_000


def batch(count: int, lost: int = 0, begin: int = 0) -> SlotBatch:
    """Return so many records, whose begins are ``begin`` and the ticks after."""
    records = b"".join(record(tid=7, start=begin + number) for number in range(count))
    made = SlotBatch(ticks=10**9, time_ns=_NOW, hz=1e9, lost=lost, records=records)
    return slot_batch.pack(made)


def batch_of(frame: bytes, unpacker: FrameUnpacker) -> SlotBatch:
    content = unpacker.content(frame[:HEADER_SIZE], frame[HEADER_SIZE:])
    assert isinstance(content, SlotBatch)
    return content


def total(batches: Sequence[SlotBatch]) -> int:
    """Return how many records there were, with the lost ones."""
    return sum(one.packed + one.lost for one in batches)


class Memory:
    """Keeps all that arrives."""

    def __init__(self) -> None:
        self.scans: list[ReceivedScan] = []

    def keep_received(self, scan: ReceivedScan) -> None:
        self.scans.append(scan)

    @property
    def batches(self) -> list[SlotBatch]:
        return [one for scan in self.scans for one in scan.records]


def test_a_large_batch_comes_in_several_frames() -> None:
    packer, unpacker = FramePacker(1e9), FrameUnpacker()
    whole = batch(2 * RECORDS_OF_FRAME + 5, lost=3)
    frames = list(packer.record_frames(whole))
    found = [batch_of(one.data, unpacker) for one in frames]
    assert [one.count for one in frames] == [RECORDS_OF_FRAME, RECORDS_OF_FRAME, 5]
    assert [one.lost for one in found] == [3, 0, 0]
    assert b"".join(map(slot_batch.slots, found)) == slot_batch.slots(whole)
    assert all(has_records(one.data) for one in frames)


def test_records_that_are_lost_on_the_way_are_counted() -> None:
    packer, unpacker = FramePacker(1e9), FrameUnpacker()
    first, gone, last = (next(packer.record_frames(batch(count, lost=1))) for count in (5, 7, 2))
    assert batch_of(first.data, unpacker).lost == 1
    assert gone.count == 7
    assert batch_of(last.data, unpacker).lost == 1 + 7 + 1


def test_a_listener_that_comes_late_has_lost_nothing() -> None:
    packer = FramePacker(1e9)
    list(packer.record_frames(batch(5)))
    (frame,) = packer.record_frames(batch(2))
    assert batch_of(frame.data, FrameUnpacker()).lost == 0


def test_records_between_two_snapshots_break_no_chain() -> None:
    packer, unpacker = FramePacker(1e9), FrameUnpacker()
    for snapshot in scans(3):
        (frame,) = packer.record_frames(batch(3))
        batch_of(frame.data, unpacker)
        whole = packer.frame(snapshot)
        assert unpacker.content(whole[:HEADER_SIZE], whole[HEADER_SIZE:]) == snapshot


@pytest.mark.parametrize(
    "changes",
    [
        {"packed": 0}, {"packed": 6}, {"packed": 1 << 40}, {"packed": -1}, {"records": b"x"},
        {"hz": 0.0}, {"hz": float("nan")}, {"hz": 1e300}, {"ticks": -1}, {"time_ns": -1},
        {"time_ns": 1 << 63}, {"lost": -1}, {"lost": (1 << 64) - 1}, {"first": -5}, {"ticks": "x"},
    ],
)  # fmt: skip
def test_forged_batches_are_one_error(changes: dict[str, object]) -> None:
    payload = msgspec.msgpack.encode(replace(batch(5), **changes))
    packed = frame_format.packed(payload)
    frame = frame_format.pack(FrameType.SLOTS, packed, len(payload), _NOW)
    with pytest.raises(LocktopError, match="damaged"):
        batch_of(frame, FrameUnpacker())


# ---- the sender ----


def test_a_stream_has_no_marks() -> None:
    outbox, raw = Outbox(), mark(1, 5, b"commit")
    outbox.add_slots(replace(batch(0), marks=raw, first=5))
    assert outbox.next_slots() is None
    outbox.add_slots(replace(batch(3), marks=raw))
    assert outbox.next_slots() == batch(3)


def test_records_that_wait_too_long_are_dropped_and_counted() -> None:
    outbox = Outbox()
    made = [batch(20_000, lost=1)] * 29 + [batch(20_000, lost=1, begin=1 << 40)]
    for one in made:
        outbox.add_slots(one)
    kept = []
    while (one := outbox.next_slots()) is not None:
        kept.append(one)
    assert 1 < len(kept) < len(made)
    assert sum(len(one.records) for one in kept) <= MAX_WAITING_BYTES
    assert total(kept) == total(made)
    assert kept[-1] == made[-1]


def test_records_come_before_the_snapshot_after_them() -> None:
    outbox, network = Outbox(), Network()
    outbox.add_slots(batch(5))
    outbox.put(replace(scans(1)[0], ended=True))
    sender = StreamSender(outbox, network, lambda _: None)
    sender.open()
    sender.run()
    assert total(network.records) == 5
    assert (sender.sent_records, sender.sent_frames) == (5, 1)


def test_records_that_a_broken_connection_took_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream_sender, "AGAIN_S", 0.0)
    monkeypatch.setattr(stream_sender, "SIGN_OF_LIFE_S", 0.01)
    outbox, network = Outbox(), Network(fails=(2,))
    outbox.add_slots(batch(2 * RECORDS_OF_FRAME + 5, lost=3))
    outbox.put(scans(1)[0])

    def opened() -> None:
        Network.open(network)
        if network.opened == 2:
            outbox.add_slots(batch(4))
            outbox.put(replace(scans(1)[0], ended=True))

    monkeypatch.setattr(network, "open", opened)
    sender = StreamSender(outbox, network, lambda _: None)
    sender.open()
    sender.run()
    assert network.opened == 2
    assert total(network.records) == 2 * RECORDS_OF_FRAME + 5 + 3 + 4
    assert network.records[-1].lost == RECORDS_OF_FRAME + 5


def test_snapshots_come_first_on_a_slow_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second of records in each second would leave no time for snapshots."""
    clock = [1000.0]
    monkeypatch.setattr(stream_sender.time, "monotonic", lambda: clock[0])
    outbox, network = Outbox(), Network()

    def send(frame: bytes) -> None:
        clock[0] += 1.0 if has_records(frame) else 0.1
        Network.send(network, frame)
        outbox.add_slots(batch(10))
        if len(network.received) < 10:
            outbox.put(scans(1)[0])
        else:
            outbox.stop()

    monkeypatch.setattr(network, "send", send)
    outbox.add_slots(batch(10))
    outbox.put(scans(1)[0])
    sender = StreamSender(outbox, network, lambda _: None)
    sender.open()
    sender.run()
    assert len(network.received) == 10
    assert 1 <= len(network.records) <= 5


# ---- the listener ----


class Datagrams:
    """A sender, a listener of datagrams, and a network between that a test disturbs."""

    def __init__(self) -> None:
        self.memory = Memory()
        self.receiver = DatagramReceiver(ReceivedStream(lambda _: None, memory=self.memory))
        self._packer = FramePacker(1e9)
        self._frames, self._number = [0, 0], 0

    def cut(self, frame: bytes) -> list[bytes]:
        channel = int(has_records(frame))
        first, number = self._number, self._frames[channel]
        parts = list(datagrams.split(frame, 9, number, first, 400, channel))
        self._frames[channel] += 1
        self._number += len(parts)
        return parts

    def records(self, count: int) -> list[bytes]:
        return [
            part for one in self._packer.record_frames(batch(count)) for part in self.cut(one.data)
        ]

    def snapshot(self, number: int, time_ns: int = _NOW) -> list[bytes]:
        return self.cut(self._packer.frame(scans(number + 1)[number], time_ns))

    def hear(self, *parts: Sequence[bytes]) -> None:
        for part in (one for some in parts for one in some):
            self.receiver.take(part, "a", 0.0)


def test_a_lost_batch_costs_no_snapshot_and_is_counted() -> None:
    network = Datagrams()
    network.hear(network.snapshot(0), network.records(5), network.snapshot(1))
    network.records(6)  # the network drops them
    network.hear(network.snapshot(2), network.records(2), network.snapshot(3))
    assert len(network.memory.scans) == 4
    assert [one.packed for one in network.memory.batches] == [5, 2]
    assert total(network.memory.batches) == 5 + 6 + 2
    assert "snapshot" not in network.receiver.losses


def test_records_and_snapshots_in_another_order_arrive_all() -> None:
    network = Datagrams()
    network.hear(network.records(5)[::-1])
    records, snapshot = network.records(6), network.snapshot(0)
    network.hear(snapshot, records, network.snapshot(1))
    assert [len(one.records) for one in network.memory.scans] == [1, 1]
    assert total(network.memory.batches) == 11


def test_a_repeated_snapshot_is_no_new_scan() -> None:
    network = Datagrams()
    network.hear(network.snapshot(0), network.records(5), network.snapshot(0))
    first, again = network.memory.scans
    assert first.time_ns is not None
    assert again.time_ns is None
    assert total(again.records) == 5


#: Several times as many bytes as may wait for a snapshot.
FRAMES = 60


def test_records_without_a_snapshot_take_bounded_memory() -> None:
    memory = Memory()
    intake, packer = StreamIntake(ReceivedStream(lambda _: None, memory=memory)), FramePacker(1e9)
    records = batch(RECORDS_OF_FRAME)
    for _ in range(FRAMES):
        for one in packer.record_frames(records):
            assert not intake.take(one.data[:HEADER_SIZE], one.data[HEADER_SIZE:])
            assert intake.held_bytes <= MAX_HELD_BYTES
    frame = packer.frame(scans(1)[0])
    assert intake.take(frame[:HEADER_SIZE], frame[HEADER_SIZE:])
    intake.publish()
    assert 1 < len(memory.batches) < FRAMES
    assert total(memory.batches) == FRAMES * RECORDS_OF_FRAME
