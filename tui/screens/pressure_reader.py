"""Reads the pressure of locks for the details panel, beside the keys."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from locktop.collector.model import Lock, Snapshot
from locktop.collector.recording.moments import Moments
from locktop.tui.widgets.list_screen import ListScreen

if TYPE_CHECKING:
    from locktop.collector.recording.past_pressure import PastPressure, PressurePhase


class PressureReader:
    """Has the pressure of the last minute before the moment on the screen."""

    def __init__(
        self, moments: Moments | None, screen: ListScreen, changed: Callable[[], None]
    ) -> None:
        """Args:
        moments: the memory or the recording; None: nothing is kept.
        screen: has the worker.
        changed: is called when there are new figures.
        """
        self._moments = moments
        self._screen = screen
        self._changed = changed
        self._past: PastPressure | None = None
        self._is_reading = False
        #: The time of the snapshot on the screen, nanoseconds since 1970.
        self.until_ns = 0

    def phases(self, snapshot: Snapshot, lock: Lock) -> Sequence[PressurePhase]:
        """Return the pressure of a lock in phases, the oldest first; () until it has been read."""
        if self._moments is None:
            return ()
        from locktop.collector.recording.past_pressure import PastPressure

        self._past = self._past or PastPressure(self._moments)
        if self._past.is_known(self.until_ns):
            return self._past.phases(snapshot, lock, self.until_ns)
        if not self._is_reading:
            self._is_reading = True
            self._screen.start(self._read(self._past, self.until_ns), "pressure")
        return ()

    async def _read(self, past: PastPressure, until_ns: int) -> None:
        try:
            await asyncio.to_thread(past.read, until_ns)
        except Exception:
            # Damage stays: a moment on the screen says what is damaged, and no figure comes.
            self._moments = None
            raise
        finally:
            self._is_reading = False
        self._changed()
