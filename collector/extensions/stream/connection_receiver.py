"""Makes snapshots of the frames of connections: TCP, with TLS or without, and unix sockets."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import threading
import time

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.stream import greeting, stream_frames, unix_socket
from locktop.collector.extensions.stream.received_stream import ReceivedStream
from locktop.collector.extensions.stream.stream_intake import StreamIntake
from locktop.collector.extensions.stream.stream_security import handshake_error
from locktop.collector.recording.frame_format import HEADER_SIZE

#: Connections at one time. One is shown; the others are about to be refused, or strange.
MAX_PEERS = 4
#: Seconds that a peer has for its certificate and greeting, and for its first snapshot.
GREETING_S, FIRST_S = 5.0, 20.0
#: Seconds until its next frame begins, and for the rest of that frame.
_NEXT_S, _REST_S = 15.0, 30.0
#: A peer without a snapshot gives way to a new peer after so many seconds.
_GIVES_WAY_S = 1.0
_CHUNK = 1 << 16
#: Seconds between two looks at the times of all peers.
_PAUSE_S = 0.2


class PeerConnection:
    """One connection. A thread reads; another one ends the connection when its time is over."""

    def __init__(self, opened: socket.socket, name: str) -> None:
        self.name = name
        self.began_at = time.monotonic()
        self.deadline = self.began_at + GREETING_S
        self.is_late = False  # dropped, which is one line
        self.socket = opened
        # A second descriptor of the connection: TLS takes the first, and shutdown needs one.
        self._control = socket.socket(fileno=os.dup(opened.fileno()))
        opened.settimeout(_REST_S)

    def shut_down(self) -> None:
        """End the connection, so that the reading thread returns."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Release the connection."""
        with contextlib.suppress(OSError):
            self.socket.close()
        self._control.close()

    def read(self, size: int) -> bytes:
        """Read exactly ``size`` bytes; b"" at the end. Memory grows only as bytes arrive."""
        data = bytearray()
        while len(data) < size:
            more = self.socket.recv(min(_CHUNK, size - len(data)))
            if not more:
                if data:
                    raise LocktopError("the connection ended within a frame")
                break
            data += more
        return bytes(data)


class ConnectionReceiver:
    """Accepts connections and follows the first that sends a snapshot, until it ends."""

    def __init__(
        self, listening: socket.socket, context: ssl.SSLContext | None, received: ReceivedStream
    ) -> None:
        """Args:
        listening: the bound socket, whose owner closes it.
        context: the settings of TLS, None without TLS.
        received: gets the snapshots.
        """
        self._listening = listening
        self._context = context
        self._received = received
        self._peers: list[PeerConnection] = []
        self._followed: PeerConnection | None = None
        self._lock = threading.Lock()
        listening.settimeout(_PAUSE_S)

    def step(self) -> None:
        """Accept one connection if there is one, and end those whose time is over."""
        try:
            opened, address = self._listening.accept()
        except TimeoutError:
            opened = None
        except OSError:  # the connection has gone already, or there are no descriptors
            opened = None
            time.sleep(_PAUSE_S)
        now = time.monotonic()
        with self._lock:
            late = [peer for peer in self._peers if now > peer.deadline and not peer.is_late]
        for peer in late:
            peer.is_late = True
            self._received.line(f"{peer.name} was dropped: it took too long")
            peer.shut_down()
        if opened is not None:
            self._admit(opened, address, now)

    def close(self) -> None:
        """End all connections."""
        with self._lock:
            peers = list(self._peers)
        for peer in peers:
            peer.shut_down()

    def _admit(self, opened: socket.socket, address: object, now: float) -> None:
        is_unix = opened.family == socket.AF_UNIX
        peer = PeerConnection(opened, "a local peer" if is_unix else _name(address))
        with self._lock:
            waiting = [peer for peer in self._peers if peer is not self._followed]
            if len(self._peers) >= MAX_PEERS and now - waiting[0].began_at > _GIVES_WAY_S:
                waiting[0].shut_down()
                self._peers.remove(waiting[0])
            is_full = len(self._peers) >= MAX_PEERS
            if not is_full:
                self._peers.append(peer)
        if is_full:
            self._received.line(f"{peer.name} was refused: too many connections")
            peer.close()
            return
        try:
            threading.Thread(target=self._serve, args=(peer, is_unix), daemon=True).start()
        except RuntimeError:
            with self._lock:
                self._peers.remove(peer)
            peer.close()
            raise

    def _serve(self, peer: PeerConnection, is_unix: bool) -> None:
        reason = ""
        try:
            if is_unix:
                unix_socket.check_peer(peer.socket)
            if self._context is not None:
                peer.socket = self._context.wrap_socket(peer.socket, server_side=True)
            if self._greet(peer):
                reason = self._read_frames(peer)
        except LocktopError as error:
            self._tell_dropped(peer, str(error))
            reason = "the sender sent damaged data"
        except (OSError, ValueError) as error:
            self._tell_dropped(peer, handshake_error(error))
            reason = "the connection broke"
        # Strangers send the data: a fault of locktop must not end the thread in silence.
        except Exception as error:
            self._received.line(f"locktop failed: {type(error).__name__}: {error}")
            reason = "locktop failed"
        finally:
            peer.close()
            with self._lock:
                if peer in self._peers:
                    self._peers.remove(peer)
                was_followed = self._followed is peer
                if was_followed:
                    self._followed = None
            if was_followed:
                self._received.waiting(f"the stream ended: {reason}")

    def _tell_dropped(self, peer: PeerConnection, reason: str) -> None:
        if not peer.is_late:  # else the end of the time is the reason
            self._received.line(f"{peer.name} was dropped: {reason}")

    def _greet(self, peer: PeerConnection) -> bool:
        """Exchange the first bytes; return False if another process is shown."""
        with self._lock:
            is_busy = self._followed is not None
        peer.socket.sendall(greeting.greeting(greeting.BUSY if is_busy else greeting.WELCOME))
        data = peer.read(greeting.SIZE)
        if len(data) < greeting.SIZE:
            return False
        greeting.check_greeting(data)
        if is_busy:
            self._received.line(f"{peer.name} was refused: another process is shown")
        return not is_busy

    def _read_frames(self, peer: PeerConnection) -> str:
        """Read until the stream ends; return the reason."""
        intake = StreamIntake(self._received)
        peer.deadline = time.monotonic() + FIRST_S
        while intake.unpacker.ended is None:
            head = peer.read(HEADER_SIZE)
            if not head:
                return "its sender closed the connection"
            header = stream_frames.parse_header(head)
            if self._followed is peer:
                peer.deadline = time.monotonic() + _REST_S
            if intake.take(head, peer.read(header.stored)):
                self._follow(peer)
                intake.publish()
                peer.deadline = time.monotonic() + _NEXT_S
        return intake.unpacker.ended

    def _follow(self, peer: PeerConnection) -> None:
        with self._lock:
            if self._followed is None:
                self._followed = peer
            if self._followed is not peer:
                raise LocktopError("another process is shown")


def _name(address: object) -> str:
    return f"{address[0]}:{address[1]}" if isinstance(address, tuple) else "a peer"
