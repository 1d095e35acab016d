"""The listener: a peer that it cannot serve does not end it."""

from __future__ import annotations

import errno
import socket
from pathlib import Path

import pytest

from locktop.collector.extensions.stream import connection_receiver, greeting, stream_url
from locktop.collector.extensions.stream.connection_receiver import PeerConnection
from locktop.collector.extensions.stream.listener import Listener


def _answer(path: Path) -> bytes:
    """Return the first bytes that the listener sends, b"" if it closes the connection."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
        peer.connect(str(path))
        return peer.recv(greeting.SIZE)


def test_a_peer_without_a_descriptor_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    class OnePeerFails(PeerConnection):
        def __init__(self, opened: socket.socket, name: str) -> None:
            made.append(name)
            if len(made) == 1:
                opened.close()
                raise OSError(errno.EMFILE, "Too many open files")
            super().__init__(opened, name)

    monkeypatch.setattr(connection_receiver, "PeerConnection", OnePeerFails)
    path, lines = tmp_path / "socket", []
    listener = Listener(stream_url.parse(f"unix://{path}", listens=True))
    listener.start(lambda _: None, lines.append)
    try:
        assert _answer(path) == b""
        assert _answer(path) == greeting.greeting(greeting.WELCOME)
    finally:
        listener.stop()
    assert lines[0] == "a peer was left out: OSError: [Errno 24] Too many open files"
