"""Predictions that are made beside the screen: they go on when the user leaves their screen."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from locktop.collector.errors import LocktopError, reason_of
from locktop.collector.extensions.whatif.model import Progress
from locktop.collector.model import Snapshot
from locktop.tui.daemon_work import run_in_daemon
from locktop.tui.widgets.list_screen import ListScreen

if TYPE_CHECKING:
    from locktop.collector.extensions.whatif.answers import Answered
    from locktop.tui.extensions.whatif.predictors import Predictor

_READY = "What if: the predictions are ready; U shows them."
_GOES_ON = "The prediction goes on; U shows it."
_RECORDING = "The recording at the level all goes on for {} s, then the level is back; U shows it."
_SECONDS = 15.0
#: Seconds between two drawings of the progress, at least.
_REDRAW_S = 0.25


class ShowsPredictions(Protocol):
    """The open screen of the predictions."""

    def show_progress(self) -> None:
        """Show how long the recording still takes."""

    def show_end(self) -> None:
        """Show new predictions, or why there are none."""


class WhatIfRun:
    """Has the newest predictions, and makes new ones."""

    def __init__(
        self, monitor: ListScreen, top: Callable[[], ListScreen], now: Callable[[], float]
    ) -> None:
        """Args:
        monitor: the lowest screen; the work ends with it.
        top: returns the screen that the user sees.
        now: a monotonic clock in seconds.
        """
        self._monitor = monitor
        self._top = top
        self._now = now
        #: The screen of the predictions; None while it is closed.
        self.screen: ShowsPredictions | None = None
        self._answered: Answered | None = None
        self.error = ""  # the reason that the last prediction failed
        self.is_busy = False
        self.progress = Progress(is_recorded=False, part=0.0)  # of the work that goes on
        self._until_s: float | None = None  # the end of the recording; None: nothing is recorded

    def answered(self, snapshot: Snapshot) -> Answered | None:
        """Return the newest predictions, if they are of the program of a snapshot."""
        if self._answered is None:
            return None
        then, now = self._answered.snapshot.process, snapshot.process
        # A process becomes another program by exec.
        is_same = (then.pid, then.counted_since) == (now.pid, now.counted_since)
        return self._answered if is_same else None

    def annotate(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot with the newest predictions, if they are of the same program."""
        answered = self.answered(snapshot)
        return answered.annotate(snapshot) if answered is not None else snapshot

    @property
    def left_s(self) -> int | None:
        """Whole seconds until the end of the recording; None while nothing is recorded."""
        if not self.is_busy or self._until_s is None or self.progress.is_recorded:
            return None
        return max(0, math.ceil(self._until_s - self._now()))

    def start(self, predictor: Predictor) -> None:
        """Predict, unless that goes on already."""
        if self.is_busy:
            return
        self.is_busy, self.error = True, ""
        seconds = predictor.recording_s
        self._until_s = self._now() + seconds if seconds else None
        self.progress = Progress(is_recorded=not seconds, part=0.0)
        self._monitor.start(partial(self._work, predictor), "what if")

    async def _work(self, predictor: Predictor) -> None:
        loop = asyncio.get_running_loop()

        drawn_at = float("-inf")

        def on_progress(progress: Progress) -> None:  # in the thread that predicts
            nonlocal drawn_at
            is_new_stage = progress.is_recorded != self.progress.is_recorded
            self.progress = progress
            if is_new_stage or time.monotonic() >= drawn_at + _REDRAW_S:
                drawn_at = time.monotonic()
                with contextlib.suppress(RuntimeError):  # the loop is closed: locktop has ended
                    loop.call_soon_threadsafe(self.tick)

        try:
            # The level comes back by itself if the end of locktop cuts the recording off.
            predict = partial(predictor.predict, on_progress)
            self._answered = await run_in_daemon(predict, "what if")
        except LocktopError as error:
            self.error = str(error)
        except OSError as error:
            self.error = reason_of(error)
        except Exception as error:
            self.error = f"fault: {type(error).__name__}"
            self._top().show_error(error)
        finally:
            self.is_busy = False
        self._tell_end()

    def tick(self) -> None:
        """Show the progress; called at each scan."""
        if self.is_busy and self.screen is not None:
            self.screen.show_progress()

    def _tell_end(self) -> None:
        if self.screen is not None:
            self.screen.show_end()
        elif self.error:
            self._top().show_message(f"What if: {self.error}", style="stuck", seconds=_SECONDS)
        else:
            self._top().show_message(_READY, seconds=_SECONDS)

    def tell_going_on(self) -> None:
        """Say that the work goes on, after its screen has closed."""
        if self.is_busy:
            left_s = self.left_s
            said = _GOES_ON if left_s is None else _RECORDING.format(left_s)
            self._top().show_message(said)
