"""The gain of likely changes of the locks, predicted from a recording of some seconds."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from functools import partial
from typing import ClassVar

from textual.binding import BindingType

from locktop.collector.format import whatif as sentences
from locktop.collector.model import Snapshot
from locktop.collector.recording.whatif import Answered
from locktop.tui.bindings import bindings
from locktop.tui.screen_actions import WHATIF
from locktop.tui.views.styled_line import cut, make_line, wrap
from locktop.tui.views.table import lay_out
from locktop.tui.views.whatif import prediction_columns, refused_lines, whatif_line
from locktop.tui.widgets.one_list_screen import OneListScreen

#: Seconds of records.
DURATION_S = 10.0
_INDENT, _NOTES_S = 2, 15.0


class WhatIfScreen(OneListScreen):
    """A list of predictions, the largest gain first."""

    SCREEN = WHATIF
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(*WHATIF.actions)]

    def __init__(
        self,
        snapshot: Snapshot,
        predict: Callable[[float], Answered],
        keep: Callable[[Answered], None],
    ) -> None:
        """Make the screen.

        Args:
            snapshot: names the process.
            predict: records for some seconds, and answers; the call blocks.
            keep: gets each answer, for the snapshots that the user saves.
        """
        super().__init__("whatif")
        self._snapshot = snapshot
        self._predict = predict
        self._keep = keep
        self._answered: Answered | None = None
        self._is_busy = False

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """The predictions stay: they are of the span that was recorded."""

    def apply_filter(self) -> None:
        """See ListScreen."""
        width, found = self.size.width, self._answered
        process = self._snapshot.process
        self.show_keys()
        title = make_line((f" {process.comm} {process.pid}  what a change would gain", "strong"))
        self.first_line.show((cut(title, width),))
        line = whatif_line(found.whatif if found else None, self._is_busy, DURATION_S)
        names = sentences.lock_names(found.whatif, found.snapshot) if found else {}
        refused = refused_lines(found.whatif, names) if found and not self._is_busy else []
        lines = [piece for one in (line, *refused) for piece in wrap(one, width, _INDENT)]
        self.headline_lines.show(lines)
        words = self.filter_words.lower()
        rows = {
            number: one
            for number, one in enumerate(found.whatif.predictions if found else ())
            if words in sentences.change(one.change, names).lower()
        }
        table = lay_out(prediction_columns(names), self._list.size.width)
        self._list.set_heads("Changes", "by predicted throughput", table.heading("GAIN"))
        self._list.show(list(rows), lambda number: table.line(rows[number]))

    def action_predict(self) -> None:
        """Record, and predict, unless that goes on."""
        if not self._is_busy:
            self._is_busy = True
            self.apply_filter()
            self.start(self._answer, "what if")

    async def _answer(self) -> None:
        try:
            self._answered = await _in_thread(partial(self._predict, DURATION_S))
            self._keep(self._answered)
        finally:
            self._is_busy = False
            if self.is_mounted:
                self.apply_filter()
        notes = sentences.notes(self._answered.whatif)
        if notes:
            self.show_message(*notes, seconds=_NOTES_S)

    def action_help(self) -> None:
        """Show the keys."""
        self.show_help(only_keys=True)


async def _in_thread(predict: Callable[[], Answered]) -> Answered:
    """Return what ``predict`` returns, or raise what it raises.

    Not by asyncio.to_thread: locktop would wait for the end of the recording before it ends. The
    level comes back by itself if the recording is cut off.
    """
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[Answered] = loop.create_future()

    def end(found: Answered | None, error: Exception | None) -> None:
        if answered.done():  # cancelled
            return
        if found is not None:
            answered.set_result(found)
        elif error is not None:
            answered.set_exception(error)

    def run() -> None:
        found, fault = None, None
        try:
            found = predict()
        except Exception as error:
            fault = error
        with contextlib.suppress(RuntimeError):  # the loop is closed: the screen has ended
            loop.call_soon_threadsafe(end, found, fault)

    threading.Thread(target=run, name="what if", daemon=True).start()
    return await answered
