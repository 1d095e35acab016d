"""A connection that takes a frame in small pieces."""

from __future__ import annotations

import socket

import pytest

from locktop.collector.extensions.stream import greeting, unix_socket
from locktop.collector.extensions.stream.destinations import ConnectionDestination
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
