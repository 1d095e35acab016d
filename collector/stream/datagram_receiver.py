"""Makes snapshots of datagrams, which anybody may send."""

from __future__ import annotations

from msgspec import Struct

from locktop.collector.errors import LocktopError
from locktop.collector.format.units import counted
from locktop.collector.model import Snapshot
from locktop.collector.recording.frame_format import HEADER_SIZE
from locktop.collector.stream import datagrams
from locktop.collector.stream.datagrams import DatagramCounts, DatagramHeader, Reassembly
from locktop.collector.stream.received_stream import ReceivedStream
from locktop.collector.stream.stream_frames import FrameUnpacker, parse_header

#: A stream is silent after so many seconds: its sender gives a sign of life every 2 s.
SILENT_S = 7.0
#: Another stream may follow after a shorter silence: its sender may have been started again.
_MAY_FOLLOW_S = 3.5
#: Streams that may follow at one time; the oldest of them goes first.
_MAX_CANDIDATES = 2


class _Arriving(Struct):
    """One stream of datagrams."""

    counts: DatagramCounts
    frames: Reassembly
    unpacker: FrameUnpacker
    heard_at: float
    last_frame: int = -1  # the newest frame that was unpacked
    frames_lost: int = 0


class DatagramReceiver:
    """Follows one stream, and then the next one. Memory is bounded whatever arrives."""

    def __init__(self, received: ReceivedStream) -> None:
        self._received = received
        self._key: tuple[str, int] | None = None  # host and id of the stream that is followed
        self._streams: dict[tuple[str, int], _Arriving] = {}
        self._is_waiting = False
        self.ignored = 0  # datagrams that were damaged, forged, repeated or of another sender

    @property
    def size(self) -> int:
        """Bytes of unfinished frames."""
        return sum(stream.frames.size for stream in self._streams.values())

    @property
    def losses(self) -> str:
        """The losses of the stream that is followed, and what was ignored; "" without any."""
        found = []
        followed = self._streams.get(self._key) if self._key is not None else None
        if followed is not None and followed.counts.lost:
            found.append(f"lost {followed.counts.lost:,} of {followed.counts.sent:,} datagrams")
        if followed is not None and followed.frames_lost:
            found.append(f"{counted(followed.frames_lost, 'snapshot')} lost with them")
        if followed is not None and followed.counts.reordered:
            found.append(f"{followed.counts.reordered:,} came in another order")
        if self.ignored:
            found.append(f"ignored {self.ignored:,} that were damaged, repeated or of others")
        return "; ".join(found)

    def take(self, datagram: bytes, host: str, now: float) -> None:
        """Take a datagram.

        Args:
            datagram: what arrived.
            host: the address of its sender.
            now: seconds of a monotonic clock.
        """
        parsed = datagrams.parse(datagram)
        if parsed is None:
            self.ignored += 1
            return
        header, data = parsed
        key = host, header.stream
        stream = self._stream(key, header, now)
        if stream is None or not stream.counts.add(header.number):
            self.ignored += 1
            return
        stream.heard_at = now
        frame = stream.frames.add(header, data)
        if frame is not None:
            self._take_frame(key, stream, header.frame, frame)

    def check_silence(self, now: float) -> None:
        """Tell when the stream that is followed has become silent."""
        followed = self._streams.get(self._key) if self._key is not None else None
        if followed is not None and not self._is_waiting and now - followed.heard_at > SILENT_S:
            self._is_waiting = True
            self._received.waiting(
                f"no datagram for {SILENT_S:g} s: the sender or the network stopped"
            )

    def _stream(self, key: tuple[str, int], header: DatagramHeader, now: float) -> _Arriving | None:
        """Return the stream of a datagram; None while another one is followed."""
        found = self._streams.get(key)
        if found is not None:
            return found
        followed = self._streams.get(self._key) if self._key is not None else None
        if (
            followed is not None
            and followed.unpacker.ended is None
            and now - followed.heard_at < _MAY_FOLLOW_S
        ):
            return None
        candidates = [other for other in self._streams if other != self._key]
        if len(candidates) >= _MAX_CANDIDATES:
            del self._streams[candidates[0]]
        made = _Arriving(DatagramCounts(header.number), Reassembly(), FrameUnpacker(), now)
        self._streams[key] = made
        return made

    def _take_frame(
        self, key: tuple[str, int], stream: _Arriving, number: int, frame: bytes
    ) -> None:
        if number != stream.last_frame + 1:
            stream.unpacker.forget()
            stream.frames_lost += number - stream.last_frame - 1 if key == self._key else 0
        try:
            snapshot = _unpacked(stream.unpacker, frame)
        except LocktopError:
            self.ignored += 1
            stream.unpacker.forget()
            return
        stream.last_frame = number
        if snapshot is not None:
            self._follow(key)
            self._is_waiting = False
            self._received.snapshot(snapshot, self.losses)
        elif stream.unpacker.ended is not None and key == self._key:
            self._is_waiting = True
            self._received.waiting(f"the stream ended: {stream.unpacker.ended}")

    def _follow(self, key: tuple[str, int]) -> None:
        if key == self._key:
            return
        self._key = key
        for other in [one for one in self._streams if one != key]:
            del self._streams[other]


def _unpacked(unpacker: FrameUnpacker, frame: bytes) -> Snapshot | None:
    """Return the snapshot of a frame, which may have zeros behind it."""
    head = frame[:HEADER_SIZE]
    end = HEADER_SIZE + parse_header(head).stored
    return unpacker.snapshot(head, frame[HEADER_SIZE:end])
