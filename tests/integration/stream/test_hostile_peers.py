"""Hostile, damaged and slow peers: a line or a count, bounded memory, and service goes on."""

from __future__ import annotations

import json
import random
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from msgspec.structs import replace
from support import tool
from support.eventually import PATIENCE_S
from support.streams import Ear, Mouth
from unit.builders import scenarios

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.stream import connection_receiver, datagrams, destinations
from locktop.collector.extensions.stream.greeting import greeting
from locktop.collector.extensions.stream.stream_frames import MAX_FRAME, MAX_UNPACKED, FramePacker
from locktop.collector.model import Snapshot
from locktop.collector.recording import frame_format
from locktop.collector.recording.frame_format import FrameType

#: Bytes that a listener may take for hostile peers: MAX_PEERS frames and what they unpack to.
MEMORY = 400 << 20
KEY = FramePacker(1e9).frame(scenarios.deadlock())


@pytest.fixture(params=["unix", "tcp", "udp"])
def ear(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ear]:
    """A listener on each transport in turn."""
    url = {"unix": f"unix://{tmp_path}/socket"}.get(request.param, f"{request.param}://:0")
    with Ear(url) as opened:
        yield opened


def send(url: str, data: bytes) -> None:
    """Send bytes as a peer that has its greeting right; to UDP as datagrams with right headers."""
    if url.startswith("udp"):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
            stream = random.getrandbits(64)
            for number, part in enumerate(datagrams.split(data[:200_000], stream, 0, 0, 1200)):
                peer.sendto(part, address(url))
                if not number % 8:
                    time.sleep(0.002)  # the buffer of the socket is small
        return
    with connected(url) as peer, suppress(OSError):
        peer.settimeout(5.0)
        peer.sendall(greeting() + data)
        peer.shutdown(socket.SHUT_WR)
        while peer.recv(1000):
            pass


def connected(url: str) -> socket.socket:
    if url.startswith("unix"):
        peer = socket.socket(socket.AF_UNIX)
        peer.connect(url.removeprefix("unix://"))
        return peer
    return socket.create_connection(address(url))


def address(url: str) -> tuple[str, int]:
    host, _, port = url.partition("://")[2].rpartition(":")
    return host, int(port)


def key_frame(payload: bytes, unpacked: int | None = None) -> bytes:
    packed = frame_format.packed(payload)
    size = len(payload) if unpacked is None else unpacked
    return frame_format.pack(FrameType.KEY, packed, size, 1)


def hostile_frames(chosen: random.Random) -> Iterator[bytes]:
    """Yield random bytes, mutated frames, and frames that are right but for their snapshot."""
    header = frame_format.parse_header(KEY)
    payload = frame_format.unpack(KEY[frame_format.HEADER_SIZE :], header.unpacked)
    for _ in range(20):
        yield chosen.randbytes(chosen.randrange(1, 3000))
        mutated = bytearray(KEY)
        mutated[chosen.randrange(len(mutated))] ^= 1 << chosen.randrange(8)
        yield bytes(mutated)
        yield KEY[: chosen.randrange(1, len(KEY))]
        inner = bytearray(payload)
        for _ in range(3):
            inner[chosen.randrange(len(inner))] = chosen.randrange(256)
        yield key_frame(bytes(inner))
    yield b"x"
    yield key_frame(bytes(MAX_UNPACKED))  # some kilobytes that unpack to 64 MB
    yield key_frame(b"\x91" * 1_000_000)  # nested without end
    yield key_frame(bytes(1000), MAX_UNPACKED)  # not as large as the header says
    for stored, unpacked in ((MAX_FRAME + 1, 1), (1, MAX_UNPACKED + 1), (0xFFFFFFFF, 0xFFFFFFFF)):
        yield struct.pack("<4sBxHIIqI", b"LTFR", 2, 0, stored, unpacked, 1, 0) + b"x"


def test_hostile_bytes_stop_nothing_and_fill_nothing(ear: Ear) -> None:
    before = psutil.Process().memory_info().rss
    largest = before
    for data in hostile_frames(random.Random(19)):
        send(ear.url, data)
        largest = max(largest, psutil.Process().memory_info().rss)
    assert largest - before < MEMORY
    assert all("\n" not in line for line in ear.lines)
    displayed_at_last(ear)


def test_random_datagrams_are_ignored_and_counted() -> None:
    chosen = random.Random(20)
    with Ear("udp://:0") as ear, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        right, _ = datagrams.split(b"x" * 100, 1, 0, 0, 1200)
        for number in range(500):
            data = bytearray(right) if number % 2 else bytearray(chosen.randbytes(number))
            if data:
                data[chosen.randrange(len(data))] ^= 1 << chosen.randrange(8)
            peer.sendto(bytes(data), address(ear.url))
        displayed_at_last(ear)
        assert "damaged, repeated or of others" in ear.snapshots[-1].notes[-1]


def test_a_peer_that_sends_nothing_is_dropped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(connection_receiver, "GREETING_S", 0.2)
    with Ear(f"unix://{tmp_path}/socket") as ear, connected(ear.url) as peer:
        ear.wait_line("took too long")
        while peer.recv(100):
            pass
        displayed_at_last(ear)


def test_a_peer_that_sends_a_byte_now_and_then_is_dropped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(connection_receiver, "FIRST_S", 0.5)
    with Ear(f"unix://{tmp_path}/socket") as ear, connected(ear.url) as peer:
        peer.sendall(greeting() + KEY[:20])
        while not any("took too long" in line for line in ear.lines):
            with suppress(OSError):  # the connection may be gone by now
                peer.sendall(b"x")
            time.sleep(0.02)


def test_peers_that_fill_the_listener_give_way(tmp_path: Path) -> None:
    with Ear(f"unix://{tmp_path}/socket") as ear:
        strangers = [connected(ear.url) for _ in range(3 * connection_receiver.MAX_PEERS)]
        ear.wait_line("too many connections")
        displayed_at_last(ear)
        for stranger in strangers:
            stranger.close()


def test_a_second_sender_is_refused_while_the_first_goes_on(tmp_path: Path) -> None:
    with Ear(f"unix://{tmp_path}/socket") as ear:
        first = Mouth(ear.url)
        first.say(scenarios.normal())
        ear.wait_snapshots(1)
        with pytest.raises(LocktopError, match="shows another process already"):
            Mouth(ear.url)
        first.end("over")
        ear.wait(lambda ear: "over" in ear.listener.stale, "the end")
        displayed_at_last(ear)


def test_a_listener_that_reads_nothing_is_given_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(destinations, "SLOW_S", 0.2)
    kept: list[socket.socket] = []

    def welcome(listening: socket.socket) -> None:
        peer, _ = listening.accept()
        peer.sendall(greeting())
        kept.append(peer)

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{tmp_path}/socket")
        listening.listen()
        listening.settimeout(PATIENCE_S)
        thread = threading.Thread(target=welcome, args=(listening,))
        thread.start()
        mouth = Mouth(f"unix://{tmp_path}/socket")
        thread.join()
        with pytest.raises(LocktopError, match="the listener is too slow"):
            mouth.say(*map(noisy, range(100)))
        kept[0].close()


def test_a_snapshot_that_no_process_can_have_is_one_line(tmp_path: Path) -> None:
    listening = tool.start("listen", f"unix://{tmp_path}/socket", "--once")
    assert listening.stderr is not None
    listening.stderr.readline()
    mouth = Mouth(f"unix://{tmp_path}/socket")
    normal = scenarios.normal()
    first = next(one for one in normal.threads if one.time is not None)
    assert first.time is not None
    wrong = replace(first, time=replace(first.time, cpu=7.0))  # a share
    mouth.say(replace(normal, threads=(wrong,)))
    line = listening.stderr.readline()
    assert line.startswith("locktop: left out: the snapshot is damaged: ")
    mouth.say(scenarios.normal())
    output, errors = listening.communicate(timeout=PATIENCE_S)
    assert errors == ""
    assert json.loads(output)["process"]["comm"] == "store"


def noisy(number: int) -> Snapshot:
    noise = random.Random(number).randbytes(20_000).hex()
    return replace(scenarios.normal(), notes=(noise,))


def displayed_at_last(ear: Ear) -> None:
    """Check that the listener still shows a right sender."""
    wanted = replace(scenarios.normal(), duration_s=98765.0)

    def is_there(ear: Ear) -> bool:
        return any(one.duration_s == wanted.duration_s for one in ear.snapshots)

    until = time.monotonic() + PATIENCE_S
    while not is_there(ear):
        assert time.monotonic() < until, ear.lines
        with suppress(LocktopError):
            mouth = Mouth(ear.url)
            mouth.say(wanted)
            time.sleep(0.2)
            mouth.destination.close()
