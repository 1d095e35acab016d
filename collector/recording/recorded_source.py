"""A source whose snapshots go to a recording too."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Collection, Mapping
from typing import Any

from msgspec.structs import replace

from locktop.collector.errors import LocktopError
from locktop.collector.model import Snapshot
from locktop.collector.recording.recorder import Recorder
from locktop.collector.recording.requested_sections import RequestedSections
from locktop.collector.shm.ring_drain import FIRST_CALLS, RingDrain
from locktop.collector.sources.base import OngoingWait, Source

#: Seconds for which the last snapshot waits for names: the user has closed the screen.
_NAMES_S = 3.0


class RecordedSource:
    """Passes all calls to ``source``, and each snapshot to ``recorder``. See Source."""

    def __init__(self, source: Source, recorder: Recorder) -> None:
        self._source = source
        self._recorder = recorder
        self._last: Snapshot | None = None
        self._is_closed = False
        self._scans = RequestedSections(source)

    def scan(self, resolve: bool = False) -> Snapshot:
        """See Source. The snapshot says why the recording ended early."""
        snapshot = self._scans.scan(resolve)
        if snapshot is not self._last:
            with contextlib.suppress(LocktopError):  # ``problem`` has the reason
                self._recorder.add(snapshot)
            self._last = snapshot
        if self._recorder.problem:
            note = f"nothing is recorded any more: {self._recorder.problem}"
            return replace(snapshot, notes=(*snapshot.notes, note))
        return snapshot

    def waits(self) -> Mapping[int, OngoingWait] | None:
        return self._source.waits()

    def hurry(self) -> None:
        self._source.hurry()

    def follow(self, tid: int, locks: Collection[int] | None = None) -> None:
        self._source.follow(tid, locks)

    def set_reading_names(self, wanted: bool) -> None:
        """See Source. The recorder has read the names."""

    def want_section(self, name: str, wanted: bool) -> None:
        """See Source. The recording has it from time to time in any case."""
        self._scans.want_section(name, wanted)

    def set_level(self, name: str) -> str:
        return self._source.set_level(name)

    def drain(self, first_calls: int = FIRST_CALLS) -> RingDrain | None:
        return self._source.drain(first_calls)

    def start_part(self, name: str, *arguments: Any) -> None:
        self._source.start_part(name, *arguments)

    def end_part(self, name: str) -> None:
        self._source.end_part(name)

    def close(self) -> None:
        """Take a last snapshot with all names, end the recording and release the target."""
        if self._is_closed:
            return
        self._is_closed = True
        last = self._last
        reason = "the process has ended" if last is not None and last.ended else "the screen closed"
        hurry = threading.Timer(_NAMES_S, self._source.hurry)
        hurry.start()
        try:
            if last is None or not last.ended:
                self.scan(resolve=True)
        except LocktopError:
            pass  # the recording ends with the snapshot before
        finally:
            hurry.cancel()
            self._recorder.finish(reason)
            self._source.close()
