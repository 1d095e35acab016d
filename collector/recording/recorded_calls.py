"""Function calls in a recording: some snapshots have them, for a call tree may be large."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec.structs import replace

from locktop.collector.analysis.figures_since import is_same_program
from locktop.collector.model import Notable, Snapshot, WaitRecord
from locktop.collector.recording.moments import Moments

#: Seconds until the next snapshot with function calls, for each node of the trees and each thread.
#: So the calls take about one percent of a CPU; and at most.
_PAUSE_S, _MAX_PAUSE_S = 0.001, 30.0
#: How far before a moment its function calls are searched.
_SEARCH_NS = round((_MAX_PAUSE_S + 5.0) * 1e9)


class HasCalls(Protocol):
    """The part of a Source that has function calls."""

    def scan(self, resolve: bool = False) -> Snapshot: ...

    def want_calls(self, wanted: bool) -> None: ...


class RecordedCalls:
    """Scans a process, from time to time with its function calls."""

    def __init__(self, source: HasCalls, now: Callable[[], float] = time.monotonic) -> None:
        """Args:
        source: the process.
        now: a monotonic clock in seconds.
        """
        self._source = source
        self._now = now
        self._due = float("-inf")
        self.is_wanted = False  # in each scan; any thread may set this

    def scan(self, resolve: bool) -> Snapshot:
        """Scan; the first scan and those with ``resolve`` have the function calls in any case."""
        is_due = resolve or self._now() >= self._due
        self._source.want_calls(is_due or self.is_wanted)
        snapshot = self._source.scan(resolve)
        if is_due:
            nodes = sum(len(tree.nodes) for tree in snapshot.calls)
            pause_s = _PAUSE_S * (nodes + len(snapshot.threads))
            self._due = self._now() + min(pause_s, _MAX_PAUSE_S)
        return snapshot


class MomentsWithCalls:
    """Moments whose snapshots have the newest function calls. See Moments.

    The first snapshots of a recording may lack names, which the last one has.
    """

    def __init__(self, moments: Moments) -> None:
        self._moments = moments
        self._last: Snapshot | None = None

    def times_ns(self) -> Sequence[int]:
        return self._moments.times_ns()

    def snapshot_at(self, time_ns: int) -> Snapshot:
        snapshot = calls_at(self._moments, time_ns)
        if self._last is None:
            self._last = self._moments.snapshot_at(self._moments.times_ns()[-1])
        if not is_same_program(self._last, snapshot):
            return snapshot
        named = self._last.stacks
        functions = {node.function for tree in snapshot.calls for node in tree.nodes}
        better = {stack: named[stack] for stack in functions if stack in named}
        return replace(snapshot, stacks={**snapshot.stacks, **better})

    def notables(self) -> Sequence[Notable]:
        return self._moments.notables()

    def records(self, from_ns: int, to_ns: int) -> Sequence[WaitRecord]:
        return self._moments.records(from_ns, to_ns)


def calls_at(moments: Moments, time_ns: int) -> Snapshot:
    """Return the newest snapshot at a time or before, with the newest function calls at that time.

    Args:
        moments: the memory or the recording.
        time_ns: nanoseconds since 1970.

    Raises:
        LocktopError: a snapshot is damaged.
    """
    snapshot = moments.snapshot_at(time_ns)
    if snapshot.calls:
        return snapshot
    newest = None
    # Forth, because snapshots are a chain of changes.
    for earlier_ns in moments.times_ns():
        if time_ns - _SEARCH_NS <= earlier_ns <= time_ns:
            earlier = moments.snapshot_at(earlier_ns)
            newest = earlier if earlier.calls else newest
    if newest is None or not is_same_program(newest, snapshot):
        return snapshot
    return replace(snapshot, calls=newest.calls, stacks={**newest.stacks, **snapshot.stacks})
