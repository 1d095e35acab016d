"""A thread that scans a source repeatedly."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from msgspec.structs import replace

from locktop.collector.errors import LocktopError
from locktop.collector.linux.signal_wakeup import SignalWakeup
from locktop.collector.model import Snapshot
from locktop.collector.sources.base import Source

_SHORTEST_S = 0.02


class Poller:
    """Publishes a snapshot each ``interval_s`` seconds, or later if a scan takes longer.

    ``publish`` runs in the poller's thread. The interval may change at any time. The thread raises
    nothing: an error ends the work with a last snapshot that carries the error as a note.
    """

    def __init__(
        self, source: Source, interval_s: float, publish: Callable[[Snapshot], None]
    ) -> None:
        self._source = source
        self._interval_s = interval_s
        self._publish = publish
        self._wakeup = SignalWakeup()
        self._stopped = False
        self._last: Snapshot | None = None
        self._thread = threading.Thread(target=self._run, name="collector", daemon=True)

    @property
    def interval_s(self) -> float:
        """Seconds from the start of one scan to the next. A signal handler may change them."""
        return self._interval_s

    @interval_s.setter
    def interval_s(self, value: float) -> None:
        self._interval_s = value
        self._wakeup.wake()

    def start(self) -> None:
        """Begin with the first scan."""
        self._thread.start()

    def stop(self, timeout_s: float = 2.0) -> None:
        """Publish nothing more.

        Args:
            timeout_s: how long to wait for the current scan, seconds.
        """
        self._stopped = True
        self._wakeup.wake()
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
            self._last = self._add_note(str(error))
        # the user must see a fault of locktop; the thread must not end in silence
        except Exception as error:
            self._last = self._add_note(f"locktop failed: {type(error).__name__}: {error}")
        return self._last

    def _add_note(self, note: str) -> Snapshot:
        if self._last is None:
            return _empty_snapshot(note)
        return replace(self._last, ended=True, notes=(*self._last.notes, note))

    def _pause(self, began: float) -> None:
        """Wait for the rest of the interval, however often the interval changes meanwhile."""
        earliest = time.monotonic() + _SHORTEST_S
        while not self._stopped:
            left_s = max(began + self._interval_s, earliest) - time.monotonic()
            if left_s <= 0.0:
                return
            self._wakeup.sleep(left_s)


def _empty_snapshot(note: str) -> Snapshot:
    from locktop.collector.model import Process

    process = Process(pid=0, comm="", cmdline=(), exe="", started_at="")
    return Snapshot(
        taken_at="", host="", source="preload", duration_s=0.0, interval_s=0.0, process=process,
        threads=(), locks=(), ended=True, notes=(note,),
    )  # fmt: skip
