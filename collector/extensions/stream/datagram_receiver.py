"""Makes snapshots of datagrams, which anybody may send."""

from __future__ import annotations

from msgspec import Struct

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.stream import datagrams
from locktop.collector.extensions.stream.datagrams import DatagramCounts, DatagramHeader, Reassembly
from locktop.collector.extensions.stream.received_stream import ReceivedStream
from locktop.collector.extensions.stream.stream_frames import has_records, parse_header
from locktop.collector.extensions.stream.stream_intake import StreamIntake
from locktop.collector.recording.frame_format import HEADER_SIZE
from locktop.collector.render.words.units import counted

#: A stream is silent after so many seconds: its sender gives a sign of life every 2 s.
SILENT_S = 7.0
#: Another stream may follow after a shorter silence: its sender may have been started again.
_MAY_FOLLOW_S = 3.5
#: Streams that may follow at one time; the oldest of them goes first.
_MAX_CANDIDATES = 2
#: Bytes of unfinished frames of ring records. Such a frame has less than a megabyte.
_MAX_RECORD_BYTES = 4 << 20


class _Arriving(Struct):
    """One stream of datagrams."""

    counts: DatagramCounts
    frames: Reassembly
    record_frames: Reassembly
    intake: StreamIntake
    heard_at: float

    @property
    def size(self) -> int:
        """Bytes of unfinished frames, and of ring records that wait for a snapshot."""
        return self.frames.size + self.record_frames.size + self.intake.held_bytes

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
        """Bytes of unfinished frames, and of ring records that wait for a snapshot."""
        return sum(stream.size for stream in self._streams.values())

    @property
    def losses(self) -> str:
        """The losses of the stream that is followed, and what was ignored; "" without any."""
        texts = []
        followed = self._streams.get(self._key) if self._key is not None else None
        if followed is not None and followed.counts.lost:
            texts.append(f"lost {followed.counts.lost:,} of {followed.counts.sent:,} datagrams")
        if followed is not None and followed.frames_lost:
            texts.append(f"{counted(followed.frames_lost, 'snapshot')} lost with them")
        if followed is not None and followed.counts.reordered:
            texts.append(f"{followed.counts.reordered:,} came in another order")
        if self.ignored:
            texts.append(f"ignored {self.ignored:,} that were damaged, repeated or of others")
        return "; ".join(texts)

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
        if 2 * header.frame > header.number:  # each frame has at least two datagrams
            self.ignored += 1
            return
        key = host, header.stream
        stream = self._stream(key, header, now)
        if stream is None or not stream.counts.add(header.number):
            self.ignored += 1
            return
        stream.heard_at = now
        if header.channel == datagrams.RECORDS:
            frame = stream.record_frames.add(header, data)
            if frame is not None:
                self._take_records(stream, frame)
            return
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
        stream = self._streams.get(key)
        if stream is not None:
            return stream
        followed = self._streams.get(self._key) if self._key is not None else None
        if (
            followed is not None
            and followed.intake.unpacker.ended is None
            and now - followed.heard_at < _MAY_FOLLOW_S
        ):
            return None
        candidates = [other for other in self._streams if other != self._key]
        if len(candidates) >= _MAX_CANDIDATES:
            del self._streams[candidates[0]]
        new_stream = _Arriving(
            counts=DatagramCounts(header.number),
            frames=Reassembly(),
            record_frames=Reassembly(_MAX_RECORD_BYTES),
            intake=StreamIntake(self._received),
            heard_at=now,
        )
        self._streams[key] = new_stream
        return new_stream

    def _take_records(self, stream: _Arriving, frame: bytes) -> None:
        try:
            if not has_records(frame):
                raise LocktopError("damaged: another frame in the channel of ring records")
            _take(stream.intake, frame)
        except LocktopError:
            self.ignored += 1

    def _take_frame(
        self, key: tuple[str, int], stream: _Arriving, number: int, frame: bytes
    ) -> None:
        if number != stream.last_frame + 1:
            stream.intake.unpacker.forget()
            missing = max(0, number - stream.last_frame - 1)
            stream.frames_lost += missing if key == self._key else 0
        try:
            has_snapshot = _take(stream.intake, frame)
        except LocktopError:
            self.ignored += 1
            stream.intake.unpacker.forget()
            return
        stream.last_frame = number
        ended = stream.intake.unpacker.ended
        # The sender repeats its last snapshot and the end, because each of them may be lost.
        if has_snapshot and (ended is None or stream.intake.has_new_scan):
            self._follow(key)
            self._is_waiting = False
            stream.intake.publish(self.losses)
        if ended is not None and key == self._key:
            self._is_waiting = True
            self._received.waiting(f"the stream ended: {ended}")

    def _follow(self, key: tuple[str, int]) -> None:
        if key == self._key:
            return
        self._key = key
        for other in [stream_key for stream_key in self._streams if stream_key != key]:
            del self._streams[other]


def _take(intake: StreamIntake, frame: bytes) -> bool:
    """Take a frame, which may have zeros behind it; return whether it has a snapshot."""
    head = frame[:HEADER_SIZE]
    end = HEADER_SIZE + parse_header(head).stored
    return intake.take(head, frame[HEADER_SIZE:end])
