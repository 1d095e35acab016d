"""Ends the sleep of a loop, also from a signal handler."""

from __future__ import annotations

import contextlib
from queue import Empty, SimpleQueue


class SignalWakeup:
    """Wakes the thread that sleeps.

    A signal handler may interrupt that thread within ``threading.Event``, while the thread has the
    lock of the event. Then the handler would wait for ever. SimpleQueue.put may be called there.
    """

    def __init__(self) -> None:
        self._calls: SimpleQueue[None] = SimpleQueue()

    def wake(self) -> None:
        """End the sleep, or the next one. Signal handlers and other threads may call this."""
        self._calls.put(None)

    def sleep(self, timeout_s: float) -> None:
        """Sleep until a call of ``wake`` since the last sleep, or for ``timeout_s`` seconds."""
        with contextlib.suppress(Empty):
            self._calls.get(timeout=max(0.0, timeout_s))
            for _ in range(self._calls.qsize()):
                self._calls.get_nowait()
