"""Which stream of datagrams is followed, and what is told about it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from unit.recording.test_recording import scans

from locktop.collector.extensions.stream import datagrams
from locktop.collector.extensions.stream.datagram_receiver import SILENT_S, DatagramReceiver
from locktop.collector.extensions.stream.received_stream import ReceivedStream
from locktop.collector.extensions.stream.stream_frames import FramePacker, end_frame
from locktop.collector.model import Snapshot


class Sender:
    """Makes the datagrams of one stream."""

    def __init__(self, stream: int, key_every_s: float = 1e9) -> None:
        self._stream = stream
        self._packer = FramePacker(key_every_s)
        self._frame = self._number = 0

    def cut(self, snapshot: Snapshot) -> list[bytes]:
        return self._cut(self._packer.frame(snapshot))

    def end(self) -> list[bytes]:
        return self._cut(end_frame("the process has ended"))

    def last(self, snapshot: Snapshot) -> list[list[bytes]]:
        """The datagrams of the last frames: snapshot and end, three times."""
        made = []
        for _ in range(3):
            self._packer.begin_anew()
            made.append(self._cut(self._packer.frame(snapshot, time_ns=1)))
            made.append(self.end())
        return made

    def whole(self, snapshot: Snapshot) -> list[bytes]:
        self._packer.begin_anew()
        return self.cut(snapshot)

    def _cut(self, frame: bytes) -> list[bytes]:
        parts = list(datagrams.split(frame, self._stream, self._frame, self._number, 400))
        self._frame += 1
        self._number += len(parts)
        return parts


class Ear:
    """A receiver and what it publishes."""

    def __init__(self) -> None:
        self.published: list[Snapshot] = []
        self.received = ReceivedStream(self.published.append)
        self.receiver = DatagramReceiver(self.received)

    def hear(self, parts: Sequence[bytes], now: float = 0.0, host: str = "a") -> None:
        for part in parts:
            self.receiver.take(part, host, now)

    @property
    def notes(self) -> tuple[str, ...]:
        return self.published[-1].notes


def test_a_late_listener_waits_for_a_whole_snapshot() -> None:
    ear, sender, made = Ear(), Sender(1), scans(3)
    sender.cut(made[0])
    ear.hear(sender.cut(made[1]))
    assert ear.published == []
    ear.hear(sender.whole(made[2]))
    assert ear.published == [made[2]], "nothing was lost since the first datagram"


def test_a_loss_is_a_note_and_the_next_whole_snapshot_counts() -> None:
    ear, sender, made = Ear(), Sender(1), scans(4)
    ear.hear(sender.cut(made[0]))
    sender.cut(made[1])
    ear.hear(sender.cut(made[2]))
    assert len(ear.published) == 1
    ear.hear(sender.whole(made[3]))
    assert len(ear.published) == 2
    assert ear.notes[-1].startswith("lost ")
    assert ear.notes[-1].endswith(" datagrams; 1 snapshot lost with them")


def test_a_burst_of_losses_loses_no_snapshot() -> None:
    ear, sender, made = Ear(), Sender(1), scans(2)
    ear.hear(sender.cut(made[0]))
    parts = sender.whole(made[1])
    ear.hear(parts[:3] + parts[4:])
    assert re.fullmatch(r"lost 1 of \d+ datagrams", ear.notes[-1])
    assert ear.published[-1].duration_s == made[1].duration_s


def test_datagrams_in_another_order_are_no_loss() -> None:
    ear, sender, made = Ear(), Sender(1), scans(3)
    ear.hear(sender.cut(made[0])[::-1])
    assert ear.published == [made[0]], "the first datagram that arrived was the last one sent"
    parts = sender.whole(made[1])
    ear.hear(parts[::-1])
    ear.hear(sender.cut(made[2]))
    assert ear.notes[-1] == f"{len(parts) - 1} came in another order"


def test_another_stream_is_ignored_while_one_is_alive() -> None:
    ear, sender, other, made = Ear(), Sender(1), Sender(2), scans(3)
    ear.hear(sender.cut(made[0]))
    foreign = other.cut(made[1])
    ear.hear(foreign, now=1.0)
    ear.hear(sender.cut(made[2]), now=2.0)
    assert [one.duration_s for one in ear.published] == [made[0].duration_s, made[2].duration_s]
    ignored = f"ignored {len(foreign)} that were damaged, repeated or of others"
    assert ear.notes[-1] == ignored


def test_damaged_and_repeated_datagrams_are_counted() -> None:
    ear, sender, made = Ear(), Sender(1), scans(3)
    ear.hear(sender.cut(made[0]))
    parts = sender.cut(made[1])
    ear.hear([b"junk", parts[0], *parts])
    ear.hear(sender.cut(made[2]))
    assert ear.notes[-1] == "ignored 2 that were damaged, repeated or of others"


def test_the_same_stream_of_another_host_is_another_stream() -> None:
    ear, sender, forger, made = Ear(), Sender(1), Sender(1), scans(2)
    ear.hear(sender.cut(made[0]))
    ear.hear(forger.whole(made[1]), host="b")
    assert len(ear.published) == 1


def test_a_sender_that_was_started_again_is_followed_after_an_end_or_a_silence() -> None:
    for ends in (True, False):
        ear, sender, again, made = Ear(), Sender(1), Sender(2), scans(2)
        ear.hear(sender.cut(made[0]))
        if ends:
            ear.hear(sender.end())
            assert ear.received.stale == "the stream ended: the process has ended"
        ear.hear(again.cut(made[1]), now=0.1 if ends else 5.0)
        assert ear.published[-1] == made[1]


@pytest.mark.parametrize("lost", [(0,), (1,), (0, 1), (0, 3), (1, 2), (0, 2, 3), (0, 1, 2, 3)])
def test_losses_at_the_end_leave_the_last_snapshot_and_the_reason(lost: tuple[int, ...]) -> None:
    """The last snapshot and the end come three times; ``lost``: which of the six are lost."""
    ear, sender, made = Ear(), Sender(1), scans(2)
    ear.hear(sender.cut(made[0]))
    last = sender.last(made[1])
    for number, parts in enumerate(last):
        if number not in lost:
            ear.hear(parts, now=1.0)
    assert ear.published[-1].duration_s == made[1].duration_s
    assert ear.received.stale == "the stream ended: the process has ended"


def test_a_repeated_snapshot_after_the_end_is_not_published_again() -> None:
    ear, sender, made = Ear(), Sender(1), scans(1)
    has_ended = []
    for parts in sender.last(made[0]):
        ear.hear(parts)
        has_ended.append(bool(ear.received.stale))
    assert has_ended == [False, True, True, True, True, True]


def test_silence_is_reported_once_and_ends_with_the_next_snapshot() -> None:
    ear, sender, made = Ear(), Sender(1), scans(2)
    ear.hear(sender.cut(made[0]))
    ear.receiver.check_silence(SILENT_S - 1)
    assert len(ear.published) == 1
    for _ in range(3):
        ear.receiver.check_silence(SILENT_S + 1)
    assert len(ear.published) == 2
    assert ear.received.stale.startswith("no datagram for 7 s")
    ear.hear(sender.cut(made[1]), now=SILENT_S + 2)
    assert ear.published[-1] == made[1]
    assert not ear.received.stale


def test_many_streams_that_never_finish_a_frame_take_bounded_memory() -> None:
    ear = Ear()
    sizes = []
    for stream in range(100):
        ear.hear(Sender(stream).cut(scans(1)[0])[6:])
        sizes.append(ear.receiver.size)
    assert max(sizes) <= 3 * sizes[0]
    assert ear.published == []
