"""The rows of predictions, and the lines above and below."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from locktop.collector.extensions.whatif import sentences, text_report
from locktop.collector.extensions.whatif.model import Prediction, WhatIf
from locktop.collector.model import Snapshot
from locktop.collector.render.words import units
from locktop.tui.views.cells import fit_right
from locktop.tui.views.styled_line import Line, make_line
from locktop.tui.views.table import Cell, Column


def prediction_columns(names: Mapping[int, str]) -> tuple[Column[Prediction], ...]:
    """The columns: the gain, its interval, the bound, and the change; ``names``: of the locks."""
    return (
        Column("GAIN", 8, _gain, fitting=fit_right),
        Column(
            "9 OF 10 IN",
            17,
            lambda prediction: (sentences.interval(prediction), "text"),
            fitting=fit_right,
        ),
        Column(
            "AT MOST",
            8,
            lambda prediction: (sentences.gain(prediction.bound), "dim"),
            fitting=fit_right,
        ),
        Column(
            "CHANGE",
            20,
            lambda prediction: (sentences.change(prediction.change, names), "text"),
            grow=1,
        ),
    )


def _gain(prediction: Prediction) -> Cell:
    style = "running" if prediction.low > 1 else "waiting" if prediction.high < 1 else "dim"
    return sentences.gain(prediction.ratio), style


def progress_line(left_s: int | None) -> Line:
    """The progress. ``left_s``: seconds until the end of the recording; None: it has ended."""
    if left_s is None:
        now = " Replaying the records with each change …"
    else:
        now = f" Recording all holds: {left_s} s left, then replaying."
    return make_line((now, "label"), ("  Esc leaves, this goes on.", "dim"))


def refusal_line(reason: str) -> Line:
    """The reason that there are no predictions."""
    return make_line((f" No prediction: {reason.rstrip('.')}.", "waiting"))


def taken_line(what_if: WhatIf, next_step: str) -> Line:
    """The time of the predictions, and what the user may do next."""
    until = f" until {_clock(what_if.taken_at)}" if what_if.taken_at else ""
    return make_line(
        (f" From {units.duration(what_if.span_s)}{until}.", "text"), (f"  {next_step}", "label")
    )


def _clock(taken_at: str) -> str:
    """The local time of day of an ISO 8601 time; "?" if it is none."""
    try:
        return datetime.fromisoformat(taken_at).astimezone().strftime("%H:%M:%S")
    except (OverflowError, OSError, ValueError):
        return "?"


def answer_line(what_if: WhatIf) -> Line:
    """The throughput, or the reason that there are no predictions."""
    if what_if.refusal is not None:
        return make_line((f" {sentences.no_prediction(what_if)}", "waiting"))
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
