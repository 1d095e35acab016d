"""The past of a process, from scans that a test makes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from locktop.collector.analysis.timeline import cells
from locktop.collector.errors import LocktopError
from locktop.collector.model import LaneState, Snapshot, TimeLine, Window
from locktop.collector.recording.history import History
from locktop.collector.recording.time_lines import TimeLineReader
from locktop.collector.sources.attach import Source, attach
from support.eventually import until
from support.targets import Target


class Past:
    """All scans of a process with the records up to each, as the command keeps them."""

    def __init__(self, target: Target) -> None:
        self._source = _attached(target)
        self._drain = self._source.drain()
        self.history = History()

    def scan(self) -> Snapshot:
        """Scan until all records that are there belong to a scan; return the last one."""
        while True:
            slots = self._drain.take(0.0).slots if self._drain is not None else None
            time_ns = time.time_ns()
            snapshot = self._source.scan(resolve=True)
            self.history.add(snapshot, time_ns, slots)
            if self._drain is None or not self._drain.has_more:
                return snapshot

    def line(self) -> TimeLine:
        reader = TimeLineReader(self.history)
        return reader.read(*reader.bounds())

    def close(self) -> None:
        if self._drain is not None:
            self._drain.close()
        self._source.close()


def _attached(target: Target) -> Source:
    """Attach as soon as the library has started, if the target has it.

    A target that has said nothing may not have begun: it would be sampled.
    """
    if not target.has_library:
        return attach(target.pid)
    sources: list[Source] = []

    def has_started() -> bool:
        with suppress(LocktopError):
            sources.append(attach(target.pid, only_exact=True))
        return bool(sources)

    until(has_started, "the library has started")
    return sources[0]


@contextmanager
def past(target: Target) -> Iterator[Past]:
    opened = Past(target)
    try:
        yield opened
    finally:
        opened.close()


def held_ns(line: TimeLine, tid: int, lock: int) -> int:
    """Return how long a thread holds a lock by its lane."""
    lane = next(lane for lane in line.lanes if lane.tid == tid)
    window = Window(from_ns=line.from_ns, to_ns=line.to_ns, count=1)
    (sums,) = cells(lane.spans, window)
    return sums.get((LaneState.HOLDING, lock), 0)
