"""The first frame of a recording: of which process it is, and which version wrote it."""

from __future__ import annotations

from msgspec import Struct

from locktop.collector.model import Snapshot


class RecordingInfo(Struct, frozen=True):
    """The content of the first frame, as msgpack. Unknown keys are ignored."""

    locktop: str  # the version that wrote the recording
    host: str
    pid: int
    comm: str
    source: str  # as Snapshot.source
    began_at: str  # ISO 8601, UTC
    #: of a part of a ring of segments: its number from 1 on; 0: the recording is whole
    segment: int = 0

    @staticmethod
    def from_snapshot(snapshot: Snapshot, version: str, segment: int = 0) -> RecordingInfo:
        """Return the description of the process of ``snapshot``."""
        return RecordingInfo(
            locktop=version,
            host=snapshot.host,
            pid=snapshot.process.pid,
            comm=snapshot.process.comm,
            source=snapshot.source,
            began_at=snapshot.taken_at,
            segment=segment,
        )
