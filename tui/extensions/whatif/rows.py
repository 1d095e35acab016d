"""The rows of predictions, and the lines above and below."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rich.cells import cell_len

from locktop.collector.extensions.whatif import sentences, text_report
from locktop.collector.extensions.whatif.model import Prediction, Progress, WhatIf
from locktop.collector.model import Snapshot
from locktop.collector.render.words import units
from locktop.collector.render.words.plot import bar
from locktop.collector.render.words.wrap import wrapped
from locktop.tui.views.cells import fit, fit_right
from locktop.tui.views.shorten import middle
from locktop.tui.views.styled_line import Line, make_line
from locktop.tui.views.table import Cell, Column

_BAR_WIDTH, _STEP_INDENT = 20, 4
#: Cells of a change at least, and of the name in it.
_MIN_CHANGE, _MIN_NAME = 20, 8


def prediction_columns(
    predictions: Sequence[Prediction], names: Mapping[int, str]
) -> tuple[Column[Prediction], ...]:
    """The columns: the gain, its interval, the bound, and the change.

    Args:
        predictions: the figures; their columns are no wider than the widest of these.
        names: of the locks by id.
    """

    def figures(title: str, cell: Callable[[Prediction], Cell]) -> Column[Prediction]:
        width = max(map(len, [title, *(cell(prediction)[0] for prediction in predictions)]))
        return Column(title, width, cell, fitting=fit_right)

    return (
        figures("GAIN", _gain),
        figures(sentences.LIKELY_RANGE.upper(), lambda row: (sentences.interval(row), "text")),
        figures(sentences.AT_MOST.upper(), lambda row: (sentences.gain(row.bound), "dim")),
        Column(
            "CHANGE",
            _MIN_CHANGE,
            lambda row: (sentences.change(row.change, names), "text"),
            fitting=_fit_change,
            grow=1,
        ),
    )


def _fit_change(text: str, width: int) -> str:
    """A change in ``width`` cells: the name of the lock is shortened, not what happens to it."""
    name, colon, what = text.rpartition(": ")
    return fit(middle(name, max(_MIN_NAME, width - cell_len(colon + what))) + colon + what, width)


def _gain(prediction: Prediction) -> Cell:
    style = "running" if prediction.low > 1 else "waiting" if prediction.high < 1 else "dim"
    return sentences.gain(prediction.ratio), style


def progress_line(progress: Progress, left_s: int | None) -> Line:
    """How far the predictions are, and what is known so far.

    Args:
        progress: the part of the recording, or of the replays.
        left_s: seconds until the end of the recording; None: it has ended.
    """
    what = " 2/2 Replaying each change  " if progress.is_recorded else " 1/2 Recording all holds  "
    left = f", {left_s} s left" if left_s is not None else ""
    so_far = "best so far: " if progress.is_recorded else "so far: "
    learned = f"  {so_far}{progress.learned}" if progress.learned else ""
    return make_line(
        (what, "label"), (bar(progress.part, _BAR_WIDTH), "running"),
        (f" {progress.part:4.0%}{left}", "text"), (learned, "text"),
        ("  Esc leaves, this goes on.", "dim"),
    )  # fmt: skip


def step_lines(steps: Sequence[str], width: int) -> list[Line]:
    """Return the steps of a prediction and its cost, as a numbered list.

    Args:
        steps: sentences.
        width: of the screen, in cells.
    """
    lines: list[Line] = [()]
    for number, step in enumerate(steps, 1):
        first, *more = wrapped(step, max(10, width - _STEP_INDENT - 1))
        lines.append(make_line((f" {number}  ", "label"), (first, "text")))
        lines += [make_line((" " * _STEP_INDENT + text.strip(), "text")) for text in more]
    return lines


def refusal_line(reason: str) -> Line:
    """The reason that there are no predictions."""
    return make_line((f" No prediction: {reason.rstrip('.')}.", "waiting"))


def taken_line(what_if: WhatIf, next_step: str) -> Line:
    """The time of the predictions, and what the user may do next."""
    until = f" until {sentences.clock(what_if.taken_at)}" if what_if.taken_at else ""
    return make_line(
        (f" Measured for {units.duration(what_if.span_s)}{until}.", "text"),
        (f"  {next_step}", "label"),
    )


def answer_line(what_if: WhatIf) -> Line:
    """The throughput, or the reason that there are no predictions."""
    if what_if.refusal is not None:
        return make_line((f" {sentences.no_prediction(what_if, on_screen=True)}", "waiting"))
    return make_line(
        (f" {what_if.rounds_per_s:,.0f} {sentences.unit(what_if)} a second", "text"),
        (f"   replay {sentences.gain(what_if.replayed)} without a change", "label"),
        (f"   {what_if.cpus_used:.2f} of {what_if.cpus} CPUs", "label"),
    )


def detail_lines(what_if: WhatIf, snapshot: Snapshot, width: int) -> list[Line]:
    """The lines of the text form below the list: the changes without a prediction come first.

    Args:
        what_if: the predictions.
        snapshot: of their time.
        width: of the screen, in cells.
    """
    texts = text_report.details(what_if, snapshot, width - 1)
    return [(), *(make_line((f" {text}" if text else "", "text")) for text in texts)]
