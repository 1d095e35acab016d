"""The sender: the newest snapshot, signs of life, and a listener that goes away."""

from __future__ import annotations

import threading

import pytest
from msgspec.structs import replace
from unit.builders import scenarios
from unit.recording.test_recording import scans

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.stream import stream_sender
from locktop.collector.extensions.stream.stream_frames import FrameUnpacker, parse_header
from locktop.collector.extensions.stream.stream_sender import Outbox, StreamSender
from locktop.collector.model import Snapshot
from locktop.collector.recording.frame_format import HEADER_SIZE, FrameType
from locktop.collector.shm.slot_batch import SlotBatch


class Network:
    """A destination that keeps what was sent, and fails as a test wants."""

    max_frame = 1 << 20
    key_every_s = 1e9
    ends = 1

    def __init__(self, fails: tuple[int, ...] = ()) -> None:
        self.opened = 0
        self.calls = 0
        self.received: list[Snapshot] = []
        self.records: list[SlotBatch] = []
        self.types: list[int] = []  # of all frames
        self.ended: str | None = None
        self._fails = fails
        self.on_frame = threading.Event()

    def open(self) -> None:
        self.opened += 1
        self._unpacker = FrameUnpacker()

    def send(self, frame: bytes) -> None:
        self.calls += 1
        if self.calls in self._fails:
            raise LocktopError("the wire broke")
        self.types.append(parse_header(frame[:HEADER_SIZE]).type)
        content = self._unpacker.content(frame[:HEADER_SIZE], frame[HEADER_SIZE:])
        if isinstance(content, Snapshot):
            self.received.append(content)
        elif content is not None:
            self.records.append(content)
        self.ended = self._unpacker.ended
        self.on_frame.set()

    def close(self) -> None:
        pass


def test_only_the_newest_snapshot_is_sent() -> None:
    outbox, made = Outbox(), scans(3)
    for snapshot in made:
        outbox.put(snapshot)
    taken = outbox.take(10.0)
    assert taken is not None
    assert taken.snapshot == made[2]
    assert outbox.take(0.01) is None


def test_the_last_snapshot_of_a_process_ends_the_stream() -> None:
    outbox, network = Outbox(), Network()
    last = replace(scenarios.normal(), ended=True)
    outbox.put(last)
    sender = StreamSender(outbox, network, lambda _: None)
    sender.open()
    sender.run()
    assert network.received == [last]
    assert network.ended == "the process has ended"
    assert sender.sent_frames == 1


def test_over_udp_the_last_snapshot_and_the_end_are_sent_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream_sender, "END_PAUSE_S", 0.0)
    outbox = Outbox()
    network = Network()
    network.ends = 3
    last = replace(scenarios.normal(), ended=True)
    outbox.put(last)
    sender = StreamSender(outbox, network, lambda _: None)
    sender.open()
    sender.run()
    assert network.types == [FrameType.KEY, FrameType.END] * 3
    assert network.received == [last] * 3


def test_without_a_new_snapshot_the_last_one_is_a_sign_of_life(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream_sender, "SIGN_OF_LIFE_S", 0.01)
    outbox, network = Outbox(), Network()
    outbox.put(scenarios.normal())
    sender = StreamSender(outbox, network, lambda _: None)
    sender.open()
    thread = threading.Thread(target=sender.run)
    thread.start()
    for _ in range(3):
        assert network.on_frame.wait(60)
        network.on_frame.clear()
    outbox.stop()
    thread.join()
    assert network.received[0] == network.received[-1]
    assert network.ended == "its sender was stopped"


def test_after_a_broken_connection_the_next_one_begins_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream_sender, "AGAIN_S", 0.0)
    monkeypatch.setattr(stream_sender, "SIGN_OF_LIFE_S", 0.01)
    outbox, network, lines = Outbox(), Network(fails=(2,)), list[str]()
    outbox.put(scenarios.normal())
    sender = StreamSender(outbox, network, lines.append)
    sender.open()
    thread = threading.Thread(target=sender.run)
    thread.start()
    while network.opened < 2 or len(network.received) < 2:
        assert network.on_frame.wait(60)
        network.on_frame.clear()
    outbox.put(replace(scenarios.normal(), ended=True))
    thread.join()
    assert lines == ["the wire broke; trying again each second", "the listener is back"]
    assert network.received[-1].ended


def test_a_snapshot_that_is_too_large_is_one_line() -> None:
    outbox, lines = Outbox(), list[str]()
    network = Network()
    network.max_frame = 100
    outbox.put(replace(scenarios.normal(), ended=True))
    sender = StreamSender(outbox, network, lines.append)
    sender.open()
    sender.run()
    assert len(lines) == 1
    assert "too large for the stream" in lines[0]
