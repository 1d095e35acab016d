"""How a frame goes to a connection, and to a socket of datagrams."""

from __future__ import annotations

import contextlib
import socket
import time

import pytest
from unit.recording.test_recording import scans

from locktop.collector.extensions.stream import greeting, stream_url, unix_socket
from locktop.collector.extensions.stream.destinations import (
    ConnectionDestination,
    DatagramDestination,
)
from locktop.collector.extensions.stream.stream_frames import FramePacker
from locktop.collector.extensions.stream.stream_url import StreamUrl, Transport


class _Piecemeal:
    """A connected socket that takes at most a thousand bytes of each call of ``send``."""

    def __init__(self) -> None:
        self.taken = b""
        self.greeted = b""

    def connect(self, path: str) -> None:
        pass

    def settimeout(self, seconds: float) -> None:
        pass

    def recv(self, size: int) -> bytes:
        return greeting.greeting(greeting.WELCOME)[:size]

    def sendall(self, data: bytes) -> None:
        """Its time limit is for all bytes, so only the greeting may come here."""
        self.greeted += data

    def send(self, data: memoryview) -> int:
        self.taken += data[:1000]
        return min(1000, len(data))


def test_the_time_limit_is_for_each_piece_of_a_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    """So a slow network carries a large frame, as long as it goes on."""
    slow = _Piecemeal()
    monkeypatch.setattr(socket, "socket", lambda *_: slow)
    monkeypatch.setattr(unix_socket, "check_peer", lambda _: None)
    destination = ConnectionDestination(StreamUrl(Transport.UNIX, path="/socket"), [], None)
    destination.open()
    frame = bytes(range(256)) * 10
    destination.send(frame)
    assert slow.taken == frame
    assert slow.greeted == greeting.greeting()


def test_datagrams_pause_after_each_burst(monkeypatch: pytest.MonkeyPatch) -> None:
    """So a listener with a small buffer does not lose them."""
    bursts: list[int] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.setblocking(False)

        def count_arrived(_seconds: float) -> None:
            bursts.append(0)
            with contextlib.suppress(BlockingIOError):
                while listening.recv(2000):
                    bursts[-1] += 1

        url = stream_url.parse(f"udp://127.0.0.1:{listening.getsockname()[1]}")
        destination = DatagramDestination(url, stream_url.resolve(url)[0], size=150)
        destination.open()
        monkeypatch.setattr(time, "sleep", count_arrived)
        destination.send(FramePacker(key_every_s=1e9).frame(scans(1)[0]))
        destination.close()
    *full, rest = bursts
    assert len(full) > 1
    assert set(full) == {8}
    assert rest < 8
