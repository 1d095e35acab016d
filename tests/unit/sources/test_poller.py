"""The poller scans again and again, and raises nothing in its thread."""

from __future__ import annotations

import queue
import sys
import threading

import pytest
from msgspec.structs import replace

from locktop.collector.errors import LocktopError
from locktop.collector.model import Process, Snapshot
from locktop.collector.sources.poller import Poller

NOTHING = Snapshot(
    taken_at="", host="", source="preload", duration_s=0.0, interval_s=0.0,
    process=Process(1, "x", (), "", ""), threads=(), locks=(),
)  # fmt: skip
PATIENCE_S = 60


class GivenSource:
    """A source that returns given snapshots, then the last snapshot again."""

    def __init__(self, *outcomes: Snapshot | Exception) -> None:
        self._outcomes = list(outcomes)

    def scan(self, resolve: bool = False) -> Snapshot:
        found = self._outcomes.pop(0) if len(self._outcomes) > 1 else self._outcomes[0]
        if isinstance(found, Exception):
            raise found
        return found

    def close(self) -> None:
        pass


def test_the_poller_scans_until_its_stop() -> None:
    published: queue.Queue[Snapshot] = queue.Queue()
    worker = Poller(GivenSource(NOTHING), 0.02, published.put)
    worker.start()
    for _ in range(3):
        assert published.get(timeout=PATIENCE_S) is NOTHING
    worker.stop()
    while not published.empty():
        published.get()
    assert published.empty()


def test_a_shorter_interval_takes_effect_at_once() -> None:
    published: queue.Queue[Snapshot] = queue.Queue()
    worker = Poller(GivenSource(NOTHING), 3600, published.put)
    worker.start()
    published.get(timeout=PATIENCE_S)
    worker.interval_s = 0.02
    published.get(timeout=PATIENCE_S)
    worker.stop()


@pytest.mark.parametrize("error", [LocktopError("cut off"), RuntimeError("cut off")])
def test_an_error_ends_with_a_snapshot_of_the_message(error: Exception) -> None:
    published: queue.Queue[Snapshot] = queue.Queue()
    before = replace(NOTHING, notes=("first",))
    worker = Poller(GivenSource(before, error), 0.02, published.put)
    worker.start()
    assert published.get(timeout=PATIENCE_S) is before
    last = published.get(timeout=PATIENCE_S)
    assert last.ended
    assert last.notes[0] == "first"
    assert "cut off" in last.notes[1]
    worker.stop()


def test_an_error_of_the_first_scan_is_reported() -> None:
    published: queue.Queue[Snapshot] = queue.Queue()
    worker = Poller(GivenSource(LocktopError("no way")), 0.02, published.put)
    worker.start()
    assert published.get(timeout=PATIENCE_S).notes == ("no way",)
    worker.stop()


def test_nothing_is_published_after_the_end() -> None:
    published: queue.Queue[Snapshot] = queue.Queue()
    worker = Poller(GivenSource(replace(NOTHING, ended=True)), 0.02, published.put)
    worker.start()
    assert published.get(timeout=PATIENCE_S).ended
    worker.stop()
    assert published.empty()


def test_a_handler_may_interrupt_a_change_of_the_interval_anywhere() -> None:
    """The profiler calls the handler at each call within the change, as a signal may."""
    poller = Poller(GivenSource(NOTHING), 3600, lambda _: None)

    def handle(*_: object) -> None:
        poller.interval_s = 7.0

    def change() -> None:
        sys.setprofile(handle)
        poller.interval_s = 8.0
        sys.setprofile(None)

    changing = threading.Thread(target=change, daemon=True)
    changing.start()
    changing.join(PATIENCE_S)
    assert not changing.is_alive(), "the handler waits for a lock that its thread has"
