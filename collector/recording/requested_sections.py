"""Sections on request in a recording: some snapshots have them, for a section may be large."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec.structs import replace

from locktop.collector.analysis.figures_since import is_same_program
from locktop.collector.extension.discovery import extensions
from locktop.collector.model import Notable, Snapshot, WaitRecord
from locktop.collector.recording.moments import Moments

#: Seconds until the next snapshot with a section, for each entry of the section and each thread.
#: So the section takes about one percent of a CPU; and at most.
_PAUSE_S, _MAX_PAUSE_S = 0.001, 30.0
#: How far before a moment its section is searched.
_SEARCH_NS = round((_MAX_PAUSE_S + 5.0) * 1e9)


class HasSections(Protocol):
    """The part of a Source that has sections on request."""

    def scan(self, resolve: bool = False) -> Snapshot: ...

    def want_section(self, name: str, wanted: bool) -> None: ...


class RequestedSections:
    """Scans a process, from time to time with the sections that are on request alone."""

    def __init__(self, source: HasSections, now: Callable[[], float] = time.monotonic) -> None:
        """Args:
        source: the process.
        now: a monotonic clock in seconds.
        """
        self._source = source
        self._now = now
        self._stacks_of = {
            extension.name: extension.entry_stacks
            for extension in extensions()
            if extension.entry_stacks is not None
        }
        self._due = dict.fromkeys(self._stacks_of, float("-inf"))
        self._wanted: frozenset[str] = frozenset()

    def want_section(self, name: str, wanted: bool) -> None:
        """Have a section in each scan, or from time to time. Any thread may call this."""
        others = self._wanted - {name}
        self._wanted = others | {name} if wanted else others

    def scan(self, resolve: bool) -> Snapshot:
        """Scan; the first scan and those with ``resolve`` have the sections in any case."""
        due = {name for name, due in self._due.items() if resolve or self._now() >= due}
        for name in self._due:
            self._source.want_section(name, name in due or name in self._wanted)
        snapshot = self._source.scan(resolve)
        for name in due:
            part = snapshot.sections.get(name)
            entries = len(self._stacks_of[name](part)) if part is not None else 0
            pause_s = _PAUSE_S * (entries + len(snapshot.threads))
            self._due[name] = self._now() + min(pause_s, _MAX_PAUSE_S)
        return snapshot


class MomentsWithSection:
    """Moments whose snapshots have the newest part of a section. See Moments.

    The first snapshots of a recording may lack names, which the last one has.
    """

    def __init__(self, moments: Moments, name: str) -> None:
        """``name``: of a section that is on request alone."""
        self._moments = moments
        self._name = name
        self._last: Snapshot | None = None

    def times_ns(self) -> Sequence[int]:
        return self._moments.times_ns()

    def snapshot_at(self, time_ns: int) -> Snapshot:
        snapshot = section_at(self._moments, time_ns, self._name)
        if self._last is None:
            self._last = self._moments.snapshot_at(self._moments.times_ns()[-1])
        part = snapshot.sections.get(self._name)
        if part is None or not is_same_program(self._last, snapshot):
            return snapshot
        named, stacks = self._last.stacks, _stacks_of(self._name, part)
        better = {stack: named[stack] for stack in stacks if stack in named}
        return replace(snapshot, stacks={**snapshot.stacks, **better})

    def notables(self) -> Sequence[Notable]:
        return self._moments.notables()

    def records(self, from_ns: int, to_ns: int) -> Sequence[WaitRecord]:
        return self._moments.records(from_ns, to_ns)


def _stacks_of(name: str, part: object) -> Sequence[int]:
    entry_stacks = (extension.entry_stacks for extension in extensions() if extension.name == name)
    return next((stacks(part) for stacks in entry_stacks if stacks is not None), ())


def section_at(moments: Moments, time_ns: int, name: str) -> Snapshot:
    """Return the newest snapshot at a time or before, with the newest part of a section then.

    Args:
        moments: the memory or the recording.
        time_ns: nanoseconds since 1970.
        name: of the section.

    Raises:
        LocktopError: a snapshot is damaged.
    """
    snapshot = moments.snapshot_at(time_ns)
    if name in snapshot.sections:
        return snapshot
    newest = None
    # Forth, because snapshots are a chain of changes.
    for earlier_ns in moments.times_ns():
        if time_ns - _SEARCH_NS <= earlier_ns <= time_ns:
            earlier = moments.snapshot_at(earlier_ns)
            newest = earlier if name in earlier.sections else newest
    if newest is None or not is_same_program(newest, snapshot):
        return snapshot
    sections = {**snapshot.sections, name: newest.sections[name]}
    return replace(snapshot, sections=sections, stacks={**newest.stacks, **snapshot.stacks})
