"""A listener publishes snapshots with its own notes."""

from __future__ import annotations

from unit.builders import scenarios

from locktop.collector.extensions.stream.received_stream import ReceivedScan, ReceivedStream
from locktop.collector.model import Snapshot

SCAN = ReceivedScan(snapshot=scenarios.normal(), time_ns=1)


def test_before_the_first_snapshot_the_screen_is_empty_and_says_why() -> None:
    published: list[Snapshot] = []
    received = ReceivedStream(published.append)
    received.waiting("for a sender")
    (found,) = published
    assert (found.process.pid, found.threads, found.notes) == (0, (), ())
    assert received.stale == "for a sender"
    received.scan(SCAN)
    received.waiting("again")
    assert published[1:] == [scenarios.normal(), scenarios.normal()]
    assert published[1] is not published[2], "the screen draws a new one alone"


def test_lines_about_peers_are_notes_of_the_next_snapshot_and_bounded() -> None:
    published: list[Snapshot] = []
    received = ReceivedStream(published.append)
    for number in range(100):
        received.line(f"peer {number} was dropped")
    received.scan(SCAN, "lost 1 of 9 datagrams")
    own = published[-1].notes[len(scenarios.normal().notes) :]
    assert own[0] == "lost 1 of 9 datagrams"
    assert len(own) == 4


def test_the_losses_stay_visible_when_no_more_snapshot_comes() -> None:
    published: list[Snapshot] = []
    received = ReceivedStream(published.append)
    received.scan(SCAN, "lost 1 of 9 datagrams")
    received.waiting("no datagram for 7 s")
    assert published[-1].notes[-1] == "lost 1 of 9 datagrams"
    received.line("a peer was dropped")
    assert published[-1].notes[-2:] == ("lost 1 of 9 datagrams", "a peer was dropped")
    received.scan(SCAN)
    assert "lost 1 of 9 datagrams" not in published[-1].notes, "another stream lost nothing"


def test_a_log_gets_the_lines_instead() -> None:
    published: list[Snapshot] = []
    lines: list[str] = []
    received = ReceivedStream(published.append, lines.append)
    for _ in range(100):
        received.line("dropped")
    received.scan(SCAN)
    assert published == [scenarios.normal()]
    assert lines == ["dropped"] * 5


def test_a_refused_peer_is_a_note_at_once_while_no_snapshot_comes() -> None:
    published: list[Snapshot] = []
    received = ReceivedStream(published.append)
    received.waiting("for a sender")
    received.line("a peer was dropped: no certificate was shown")
    assert published[-1].notes == ("a peer was dropped: no certificate was shown",)
    assert received.stale == "for a sender"
    received.scan(SCAN)
    count = len(published)
    received.line("another peer was dropped")
    assert len(published) == count, "the next snapshot carries the note"


def test_a_fault_of_the_screen_is_a_note_of_the_next_snapshot() -> None:
    published: list[Snapshot] = []

    def publish(snapshot: Snapshot) -> None:
        published.append(snapshot)
        if len(published) == 1:
            raise RuntimeError("no loop")

    received = ReceivedStream(publish)
    received.waiting("for a sender")
    received.scan(SCAN)
    assert published[-1].notes[-1] == "a snapshot was not shown: RuntimeError: no loop"


def test_after_the_end_nothing_is_published() -> None:
    published: list[Snapshot] = []
    received = ReceivedStream(published.append)
    received.close()
    received.scan(SCAN)
    received.waiting("the stream ended")
    assert published == []
