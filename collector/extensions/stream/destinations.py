"""Where the frames of a stream go: datagrams, or a connection."""

from __future__ import annotations

import contextlib
import math
import secrets
import socket
import ssl
import time
from collections.abc import Sequence
from typing import Protocol

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.stream import datagrams, greeting, unix_socket
from locktop.collector.extensions.stream.stream_frames import MAX_FRAME, has_records
from locktop.collector.extensions.stream.stream_security import (
    TlsFiles,
    check_allowed,
    handshake_error,
    sender_context,
)
from locktop.collector.extensions.stream.stream_url import Endpoint, StreamUrl, Transport, resolve

#: So many datagrams at once, then a pause: some 4 MB a second. The buffer of a UDP socket holds
#: some 90 datagrams, and the listener may be busy for some milliseconds.
_BURST, _PAUSE_S = 8, 0.002
#: The listener decodes so many bytes a second at least; meanwhile the stream pauses.
_DECODES = 50e6
#: To connect; a listener that takes no byte for so long is too slow. Seconds.
_CONNECT_S, SLOW_S = 10.0, 10.0
#: Whole snapshots come so often, seconds: a late listener of datagrams waits for one. With the
#: sender's signs of life the longest time between two is below 4 s.
_KEY_EVERY_S = 2.0
#: The last snapshot and the end come so often over UDP: nothing follows that would heal a loss.
_ENDS = 3


class StreamDestination(Protocol):
    """Takes frames. ``send`` may take as long as the network needs."""

    max_frame: int  # bytes
    key_every_s: float  # a whole snapshot must come so often, seconds
    ends: int  # so many times the last snapshot and the end are sent

    def open(self) -> None:
        """Get ready for a new stream. Raises LocktopError."""

    def send(self, frame: bytes) -> None:
        """Send a frame. Raises LocktopError, after which only ``open`` may follow."""

    def close(self) -> None:
        """Release the socket."""


def destination_of(
    url: StreamUrl, files: TlsFiles | None, plain: bool, datagram_size: int
) -> StreamDestination:
    """Return the destination for an address.

    Args:
        url: the address as given.
        files: the files for TLS, None for none.
        plain: whether the user allows a stream without encryption.
        datagram_size: bytes of a datagram at most.

    Raises:
        LocktopError: the address is unknown, or the stream would be unsafe.
    """
    endpoints = resolve(url) if url.transport is not Transport.UNIX else []
    check_allowed(url, endpoints, files, plain)
    if url.transport is Transport.UDP:
        return DatagramDestination(url, endpoints[0], datagram_size)
    return ConnectionDestination(url, endpoints, files)


class DatagramDestination:
    """Sends datagrams, at a bounded rate, whether a listener is there or not."""

    key_every_s = _KEY_EVERY_S
    ends = _ENDS

    def __init__(self, url: StreamUrl, endpoint: Endpoint, size: int) -> None:
        """``size``: bytes of a datagram at most."""
        self.max_frame = datagrams.max_frame(size)
        self._url = url
        self._endpoint = endpoint
        self._size = size
        self._socket: socket.socket | None = None
        self._stream = self._datagrams = 0
        self._frames = [0, 0]  # of each channel

    def open(self) -> None:
        self.close()
        self._stream = secrets.randbits(64)
        self._frames, self._datagrams = [0, 0], 0
        try:
            self._socket = socket.socket(self._endpoint.family, socket.SOCK_DGRAM)
            self._socket.connect(self._endpoint.address)
        except OSError as error:
            self.close()
            raise LocktopError(f"{self._url}: {handshake_error(error)}") from None

    def send(self, frame: bytes) -> None:
        assert self._socket is not None
        channel = datagrams.RECORDS if has_records(frame) else datagrams.SNAPSHOTS
        parts = datagrams.split(
            frame, self._stream, self._frames[channel], self._datagrams, self._size, channel
        )
        self._frames[channel] += 1
        for number, datagram in enumerate(parts, 1):
            self._send(self._socket, datagram)
            self._datagrams += 1
            if number % _BURST == 0:
                time.sleep(_PAUSE_S)
        time.sleep(len(frame) / _DECODES)

    def _send(self, opened: socket.socket, datagram: bytes) -> None:
        try:
            opened.send(datagram)
        except (ConnectionRefusedError, BlockingIOError):
            pass  # no listener yet, or no more: the next one gets a whole snapshot
        except OSError as error:
            raise LocktopError(f"{self._url}: {handshake_error(error)}") from None

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class ConnectionDestination:
    """Sends frames over TCP, with TLS or without, or over a unix socket."""

    max_frame = MAX_FRAME
    #: A connection loses nothing, so the chain of snapshots decides.
    key_every_s = math.inf
    ends = 1

    def __init__(
        self, url: StreamUrl, endpoints: Sequence[Endpoint], files: TlsFiles | None
    ) -> None:
        """Make it. Raises LocktopError if a file of TLS cannot be used.

        Args:
            url: the address as given.
            endpoints: the addresses of its host; none for a unix socket.
            files: the files for TLS, None for none.
        """
        self._url = url
        self._endpoints = endpoints
        self._context = sender_context(files) if files is not None else None
        self._socket: socket.socket | None = None

    def open(self) -> None:
        self.close()
        try:
            self._socket = self._connect()
            # Read first: after a refused certificate, bytes sent would hide TLS's reason.
            greeting.check_greeting(_read(self._socket, greeting.SIZE))
            self._socket.sendall(greeting.greeting())
            self._socket.settimeout(SLOW_S)
        except (OSError, LocktopError) as error:
            self.close()
            reason = error if isinstance(error, LocktopError) else handshake_error(error)
            raise LocktopError(f"{self._url}: {reason}{_cure(error, self._url)}") from None

    def _connect(self) -> socket.socket:
        if self._url.transport is Transport.UNIX:
            plain = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket = plain
            plain.settimeout(_CONNECT_S)
            plain.connect(self._url.path)
            unix_socket.check_peer(plain)
            return plain
        plain = self._first_that_answers()
        self._socket = plain
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._context is None:
            return plain
        return self._context.wrap_socket(plain, server_hostname=self._url.host)

    def _first_that_answers(self) -> socket.socket:
        refused: OSError = ConnectionRefusedError("no address")
        for endpoint in self._endpoints:
            plain = socket.socket(endpoint.family, socket.SOCK_STREAM)
            plain.settimeout(_CONNECT_S)
            try:
                plain.connect(endpoint.address)
            except OSError as error:
                refused = error
                plain.close()
            else:
                return plain
        raise refused

    def send(self, frame: bytes) -> None:
        assert self._socket is not None
        left = memoryview(frame)
        try:
            # The time limit of sendall() is for all bytes, and that of send() for the next ones.
            while left:
                left = left[self._socket.send(left) :]
        except TimeoutError:
            self.close()
            raise LocktopError(
                f"{self._url}: the listener is too slow: it took nothing for {SLOW_S:g} s"
            ) from None
        except OSError as error:
            self.close()
            raise LocktopError(f"{self._url}: {handshake_error(error)}") from None

    def close(self) -> None:
        if self._socket is None:
            return
        with contextlib.suppress(OSError):
            if isinstance(self._socket, ssl.SSLSocket):
                self._socket.settimeout(0.5)
                self._socket.unwrap()
        self._socket.close()
        self._socket = None


def _read(connection: socket.socket, size: int) -> bytes:
    """Read ``size`` bytes, a few."""
    data, until = b"", time.monotonic() + _CONNECT_S
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise LocktopError("the listener closed the connection; does it need --cert?")
        data += more
        if time.monotonic() > until:
            raise TimeoutError
    return data


def _cure(error: Exception, url: StreamUrl) -> str:
    if isinstance(error, (ConnectionRefusedError, FileNotFoundError)):
        return f"; start `locktop listen {url}` there first"
    return ""
