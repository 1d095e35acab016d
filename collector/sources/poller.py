"""Looks at a source again and again in a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from msgspec.structs import replace

from locktop.collector.errors import LocktopError
from locktop.collector.model import Snapshot
from locktop.collector.sources.base import Source

_SHORTEST_S = 0.02


class Poller:
    """Publishes a snapshot each ``interval_s`` seconds, later where a look takes longer.

    ``publish`` is called in the worker's thread. The interval may be changed at any time. Nothing
    is raised there: an error ends the work with a last snapshot that carries it as a note.
    """

    def __init__(
        self, source: Source, interval_s: float, publish: Callable[[Snapshot], None]
    ) -> None:
        self._source = source
        self._interval_s = interval_s
        self._publish = publish
        self._wake = threading.Event()
        self._stopped = False
        self._last: Snapshot | None = None
        self._thread = threading.Thread(target=self._run, name="collector", daemon=True)

    @property
    def interval_s(self) -> float:
        """Seconds from the start of one look to the next."""
        return self._interval_s

    @interval_s.setter
    def interval_s(self, value: float) -> None:
        self._interval_s = value
        self._wake.set()

    def start(self) -> None:
        """Begin with the first look."""
        self._thread.start()

    def stop(self, timeout_s: float = 2.0) -> None:
        """Publish nothing more; wait a moment for a look that is under way."""
        self._stopped = True
        self._wake.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._stopped:
            began = time.monotonic()
            snapshot = self._scan()
            if self._stopped:
                return
            if snapshot is not None:
                self._publish(snapshot)
            if snapshot is None or snapshot.ended:
                return
            self._pause(began)

    def _scan(self) -> Snapshot | None:
        try:
            self._last = self._source.scan()
        except LocktopError as error:
            self._last = self._with_note(str(error))
        except Exception as error:  # a fault of ours must be seen, not kill the thread in silence
            self._last = self._with_note(f"locktop failed: {type(error).__name__}: {error}")
        return self._last

    def _with_note(self, note: str) -> Snapshot:
        if self._last is None:
            return _nothing_seen(note)
        return replace(self._last, ended=True, notes=(*self._last.notes, note))

    def _pause(self, began: float) -> None:
        """Wait for what is left of the interval, however often it changes meanwhile."""
        while not self._stopped:
            self._wake.clear()
            left = began + self._interval_s - time.monotonic()
            if not self._wake.wait(max(left, _SHORTEST_S)):
                return


def _nothing_seen(note: str) -> Snapshot:
    from locktop.collector.model import Process

    process = Process(pid=0, comm="", cmdline=(), exe="", started_at="")
    return Snapshot(
        taken_at="", host="", source="preload", duration_s=0.0, interval_s=0.0, process=process,
        threads=(), locks=(), ended=True, notes=(note,),
    )  # fmt: skip
