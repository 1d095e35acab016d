"""The gain of likely changes of the locks, predicted from a recording of some seconds."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical

from locktop.collector.extensions.whatif import sentences
from locktop.collector.extensions.whatif.answers import Answered
from locktop.collector.extensions.whatif.model import WhatIf
from locktop.collector.model import Snapshot
from locktop.collector.render.rendered_files import save_snapshot
from locktop.tui.bindings import bindings
from locktop.tui.extensions.whatif.predictors import Predictor
from locktop.tui.extensions.whatif.rows import (
    answer_line,
    detail_lines,
    prediction_columns,
    progress_line,
    refusal_line,
    step_lines,
    taken_line,
)
from locktop.tui.extensions.whatif.run import WhatIfRun
from locktop.tui.extensions.whatif.screen_actions import SCREEN_ACTIONS
from locktop.tui.views.styled_line import Line, cut, make_line, wrap
from locktop.tui.views.table import lay_out
from locktop.tui.widgets.fixed_lines import FixedLines
from locktop.tui.widgets.one_list_screen import OneListScreen

_INDENT, _NOTES_S = 2, 15.0
#: Rows of the title and of the keys.
_FRAME = 2


class WhatIfScreen(OneListScreen):
    """A list of predictions, the largest gain first; below it the lines of the text form."""

    SCREEN = SCREEN_ACTIONS
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(*SCREEN_ACTIONS.actions)]

    def __init__(self, snapshot: Snapshot, run: WhatIfRun, predictor: Predictor) -> None:
        """Make the screen.

        Args:
            snapshot: names the process.
            run: has the predictions, and makes new ones.
            predictor: makes them.
        """
        super().__init__("whatif")
        self._details = FixedLines(id="whatif-details")
        self._snapshot = snapshot
        self._run = run
        self._predictor = predictor

    def compose_body(self) -> ComposeResult:
        """The list, and the details below."""
        with Vertical(id="whatif-body"):
            yield from super().compose_body()
            yield self._details

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Keep a snapshot to save; the predictions stay: they are of the span that was recorded."""
        self._snapshot = snapshot
        self._show_headline()

    def show_progress(self) -> None:
        """Show how long the recording still takes."""
        if self.is_mounted:
            self._show_headline()

    def show_end(self) -> None:
        """Show new predictions, or why there are none."""
        if not self.is_mounted:
            return
        self.apply_filter()
        what_if = self._what_if
        if what_if is not None and not self._run.error:
            notes = sentences.notes(what_if)
            if notes and not self._has_room(self._detail_lines()):
                self.show_message(*notes, seconds=_NOTES_S)

    @property
    def _answered(self) -> Answered | None:
        return self._run.answered(self._snapshot)

    @property
    def _what_if(self) -> WhatIf | None:
        answered = self._answered
        return answered.whatif if answered is not None else None

    def apply_filter(self) -> None:
        answered, what_if = self._answered, self._what_if
        process = self._snapshot.process
        self.show_keys()
        title = make_line((f" {process.comm} {process.pid}  what a change would gain", "strong"))
        self.status_row.show((cut(title, self.size.width),))
        self._show_headline()
        names = sentences.lock_names(answered.whatif, answered.snapshot) if answered else {}
        words = self.filter_words.lower()
        rows = {
            number: prediction
            for number, prediction in enumerate(what_if.predictions if what_if else ())
            if words in sentences.change(prediction.change, names).lower()
        }
        table = lay_out(prediction_columns(list(rows.values()), names), self._list.size.width)
        self._list.set_heads("Changes", "by predicted throughput", table.heading("GAIN"))
        self._show_details()
        self._list.show(list(rows), lambda number: table.line(rows[number]))

    def _headline(self) -> list[Line]:
        """The progress, the predictions, and the effect of Enter."""
        run, what_if = self._run, self._what_if
        is_replaying = run.is_busy and run.left_s is None
        reason = "" if is_replaying else self._predictor.why_not(self._snapshot)
        next_step = "" if run.is_busy or reason else f"Enter {self._predictor.begin()}"
        if reason and what_if is not None and not run.is_busy and not run.error:
            next_step, reason = f"No newer ones: {reason}.", ""
        lines = []
        if run.is_busy and not reason:
            lines.append(progress_line(run.progress, run.left_s))
        elif error := run.error or reason:
            lines.append(refusal_line(error))
        if what_if is not None:
            lines += [answer_line(what_if), taken_line(what_if, next_step)]
        elif next_step:
            lines.append(make_line((f" {next_step}", "label")))
        return [piece for line in lines for piece in wrap(line, self.size.width, _INDENT)]

    def _show_headline(self) -> None:
        rows = len(self.headline_lines.lines)
        self.headline_lines.show(self._headline())
        if len(self.headline_lines.lines) != rows:
            self._show_details()

    # The details

    def _detail_lines(self) -> list[Line]:
        answered = self._answered
        if answered is None:
            is_waiting = not self._run.is_busy and not self._predictor.why_not(self._snapshot)
            return step_lines(self._predictor.steps(), self.size.width) if is_waiting else []
        return detail_lines(answered.whatif, answered.snapshot, self.size.width)

    @property
    def _list_height(self) -> int:
        """Rows of the list: its heads, and a row for each prediction, whatever the filter."""
        what_if = self._what_if
        return self._list.heads + (len(what_if.predictions) if what_if is not None else 0)

    def _room(self) -> int:
        """Rows that the headline and the list leave."""
        above = _FRAME + len(self.headline_lines.lines) + self._list_height
        return max(0, self.size.height - above)

    def _has_room(self, lines: list[Line]) -> bool:
        return len(lines) <= self._room()

    def _show_details(self) -> None:
        """Show as many details as there is room for."""
        lines = self._detail_lines()
        if not self._has_room(lines):
            rest = make_line((" … W saves all lines; a higher window shows them", "dim"))
            lines = [*lines[: self._room() - 1], rest] if self._room() else []
        self._list.styles.max_height = self._list_height if lines else None
        self._details.show(lines)

    # Actions, as named in actions.py

    def action_predict(self) -> None:
        """Record, and predict, unless that goes on or cannot succeed."""
        if not self._run.is_busy and (reason := self._predictor.why_not(self._snapshot)):
            self.show_message(f"No prediction: {reason.rstrip('.')}.", style="waiting")
            return
        self._run.start(self._predictor)
        self.apply_filter()

    def action_save(self, form: str) -> None:
        """Save the snapshot with the newest predictions."""
        if self._snapshot.process.pid:
            self.save(partial(save_snapshot, self._run.annotate(self._snapshot), form))
        else:
            self.show_message("Not saved: there is no snapshot yet")

    def action_help(self) -> None:
        """Show the keys."""
        self.show_help(only_keys=True)
