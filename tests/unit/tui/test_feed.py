"""The feed of a live process: scans go to the screen, then to the memory."""

from __future__ import annotations

import queue
from collections.abc import Collection, Mapping

import pytest
from msgspec.structs import replace
from unit.builders import scenarios

from locktop.collector.errors import LocktopError
from locktop.collector.model import Mark, NotableKind, Snapshot
from locktop.collector.recording.history import History
from locktop.collector.recording.past_events import newest_of_each
from locktop.collector.sources.base import OngoingWait
from locktop.tui.feed import CoreFeed, PollerFeed

_SCANS = 6


class _Process:
    """A process with a mark that ends after some scans."""

    def __init__(self) -> None:
        self._scans = 0

    def scan(self, resolve: bool = False) -> Snapshot:
        self._scans += 1
        return replace(
            scenarios.normal(),
            duration_s=100.0 + self._scans,
            marks=(Mark(5, float(self._scans), "deploy"),),
            ended=self._scans == _SCANS,
        )

    def waits(self) -> Mapping[int, OngoingWait] | None:
        return None

    def hurry(self) -> None:
        pass

    def follow(self, tid: int, locks: Collection[int] | None = None) -> None:
        pass

    def want_section(self, name: str, wanted: bool) -> None:
        pass

    def set_level(self, name: str) -> str:
        return name

    def drain(self, first_calls: int = 0) -> None:
        pass

    def close(self) -> None:
        pass


def _run(feed: PollerFeed, session_after: int = 0) -> list[Snapshot]:
    found = queue.Queue[Snapshot]()

    def publish(snapshot: Snapshot) -> None:
        found.put(snapshot)
        if found.qsize() == session_after:
            feed.session(begins=True)

    feed.start(publish, 0.01)
    try:
        return [found.get(timeout=60) for _ in range(_SCANS)]
    finally:
        feed.stop()


def test_scans_are_kept_as_the_screen_shows_them_with_all_moments() -> None:
    history = History()
    visible = _run(PollerFeed(_Process(), history))
    kept = [history.snapshot_at(time_ns) for time_ns in history.times_ns()]
    visible = [replace(one, events=newest_of_each(one.events)) for one in visible]
    assert (kept[0], kept[-1]) == (visible[0], visible[-1])
    assert all(one in visible for one in kept), "on a busy machine fewer are kept"
    kinds = {one.kind for one in history.notables()}
    assert kinds == {NotableKind.MARK, NotableKind.WAIT, NotableKind.ENDED}


def test_a_session_makes_no_second_moment_of_a_mark() -> None:
    history = History()
    _run(PollerFeed(_Process(), history), session_after=3)
    assert [one.text for one in history.notables()].count("deploy") == 1


def test_a_fault_of_the_memory_ends_no_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> int:
        raise MemoryError("no room")

    monkeypatch.setattr(History, "add", fail)
    visible = _run(PollerFeed(_Process(), History()))
    assert len(visible) == _SCANS
    assert visible[0].notes == ()
    assert visible[-1].notes[-1] == "the past is kept no more: MemoryError: no room"


def test_a_core_is_published_once_and_has_no_level() -> None:
    published: list[Snapshot] = []
    snapshot = replace(scenarios.normal(), source="core")
    feed = CoreFeed(snapshot)
    feed.start(published.append, 0.5)
    assert published == [snapshot]
    assert feed.source is None
    with pytest.raises(LocktopError, match="this is a core"):
        feed.set_level("counting")
