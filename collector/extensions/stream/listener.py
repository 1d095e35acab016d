"""Listens at an address, and publishes the snapshots that arrive there."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import closing

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.stream.connection_receiver import ConnectionReceiver
from locktop.collector.extensions.stream.datagram_receiver import DatagramReceiver
from locktop.collector.extensions.stream.received_stream import ReceivedStream, ScanMemory
from locktop.collector.extensions.stream.stream_security import (
    TlsFiles,
    check_allowed,
    listener_context,
)
from locktop.collector.extensions.stream.stream_url import (
    Endpoint,
    StreamUrl,
    Transport,
    host_port,
    resolve,
)
from locktop.collector.extensions.stream.unix_socket import BoundSocket
from locktop.collector.model import Snapshot

_POLL_S = 0.2
#: As much as the kernel gives; it doubles the number for its own records.
_BUFFER = 4 << 20
_LARGEST_DATAGRAM = 65_535


class Listener:
    """A bound address. ``start`` begins to receive, in threads of its own."""

    def __init__(self, url: StreamUrl, files: TlsFiles | None = None, plain: bool = False) -> None:
        """Bind the address.

        Args:
            url: where to listen.
            files: the files for TLS, None for none.
            plain: whether the user allows a stream without encryption.

        Raises:
            LocktopError: the address is taken or wrong, or the stream would be unsafe.
        """
        endpoints = resolve(url) if url.transport is not Transport.UNIX else []
        check_allowed(url, endpoints, files, plain)
        self._context = listener_context(files) if files is not None else None
        self._transport = url.transport
        self._bound_file: BoundSocket | None = None
        if url.transport is Transport.UNIX:
            self._bound_file = BoundSocket(url)
            self._socket = self._bound_file.socket
            self.url = url
        else:
            self._socket = _bound(url, endpoints[0])
            self.url = StreamUrl(url.transport, url.host, self._socket.getsockname()[1])
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._received: ReceivedStream | None = None

    @property
    def stale(self) -> str:
        """The reason that no snapshot comes for now; "" while they come."""
        return self._received.stale if self._received is not None else ""

    def start(
        self,
        publish: Callable[[Snapshot], None],
        log: Callable[[str], None] | None = None,
        memory: ScanMemory | None = None,
    ) -> None:
        """Begin; see ReceivedStream for the parameters."""
        self._received = received = ReceivedStream(publish, log, memory)
        run = self._run_datagrams if self._transport is Transport.UDP else self._run_connections
        if log is None:
            received.waiting(f"for `locktop stream -p PID --to {self.url}`")
        self._thread = threading.Thread(target=run, args=(received,), name="listener", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop, and remove the file of a unix socket."""
        self._stopping.set()
        if self._received is not None:
            self._received.close()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(2.0)
        if self._bound_file is not None:
            self._bound_file.close()
        self._socket.close()

    def _run_datagrams(self, received: ReceivedStream) -> None:
        receiver = DatagramReceiver(received)
        self._socket.settimeout(_POLL_S)
        while not self._stopping.is_set():
            try:
                self._take_datagram(receiver)
                receiver.check_silence(time.monotonic())
            # Strangers send the data: a fault of locktop must not end the thread in silence.
            except Exception as error:
                received.line(f"locktop failed: {type(error).__name__}: {error}")

    def _take_datagram(self, receiver: DatagramReceiver) -> None:
        try:
            datagram, address = self._socket.recvfrom(_LARGEST_DATAGRAM)
        except OSError:
            return  # no datagram in this time
        receiver.take(datagram, address[0], time.monotonic())

    def _run_connections(self, received: ReceivedStream) -> None:
        with closing(ConnectionReceiver(self._socket, self._context, received)) as receiver:
            while not self._stopping.is_set():
                try:
                    receiver.step()
                # Without descriptors or threads for one more peer, the others go on.
                except Exception as error:
                    received.line(f"a peer was left out: {type(error).__name__}: {error}")
                    self._stopping.wait(_POLL_S)


def _bound(url: StreamUrl, endpoint: Endpoint) -> socket.socket:
    is_udp = url.transport is Transport.UDP
    bound = socket.socket(endpoint.family, socket.SOCK_DGRAM if is_udp else socket.SOCK_STREAM)
    try:
        if is_udp:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        else:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(endpoint.address)
        if not is_udp:
            bound.listen()
    except OSError as error:
        bound.close()
        reason = (error.strerror or str(error)).lower()
        where = host_port(url.host, url.port)
        raise LocktopError(f"cannot listen at {where}: {reason}; name another port") from None
    return bound
