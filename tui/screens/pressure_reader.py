"""Reads the pressure of locks for the details panel, beside the keys."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
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
        self.is_reading = False
        self._until_ns = 0  # the time of the snapshot on the screen, since 1970

    def show(self, time_ns: int | None) -> None:
        """Take the time of the snapshot on the screen, nanoseconds since 1970; None: now."""
        self._until_ns = time_ns if time_ns is not None else self.now_ns()

    @staticmethod
    def now_ns() -> int:
        """Return the time, nanoseconds since 1970."""
        return time.time_ns()

    def phases(self, snapshot: Snapshot, lock: Lock) -> Sequence[PressurePhase] | None:
        """Return the pressure of a lock in phases, the oldest first.

        Returns:
            () while another thread reads the snapshots; None if nothing is kept.
        """
        if self._moments is None:
            return None
        from locktop.collector.recording.past_pressure import PastPressure

        self._past = self._past or PastPressure(self._moments)
        if self._past.is_known(self._until_ns):
            return self._past.phases(snapshot, lock, self._until_ns)
        if not self.is_reading:
            self.is_reading = True
            self._screen.start(partial(self._read, self._past, self._until_ns), "pressure")
        return ()

    async def _read(self, past: PastPressure, until_ns: int) -> None:
        try:
            await asyncio.to_thread(past.read, until_ns)
        except Exception:
            # Damage stays: a moment on the screen says what is damaged, and no figure comes.
            self._moments = None
            raise
        finally:
            self.is_reading = False
        self._changed()
