"""The rows of predictions."""

from __future__ import annotations

from collections.abc import Mapping

from locktop.collector.format import whatif as sentences
from locktop.collector.model import Prediction, WhatIf
from locktop.tui.views.cells import fit_right
from locktop.tui.views.styled_line import Line, make_line
from locktop.tui.views.table import Cell, Column


def prediction_columns(names: Mapping[int, str]) -> tuple[Column[Prediction], ...]:
    """The columns: the gain, its interval, the bound, and the change; ``names``: of the locks."""
    return (
        Column("GAIN", 8, _gain, fitting=fit_right),
        Column("9 OF 10 IN", 17, lambda one: (sentences.interval(one), "text"), fitting=fit_right),
        Column("AT MOST", 8, lambda one: (sentences.gain(one.bound), "dim"), fitting=fit_right),
        Column("CHANGE", 20, lambda one: (sentences.change(one.change, names), "text"), grow=1),
    )


def _gain(one: Prediction) -> Cell:
    style = "running" if one.low > 1 else "waiting" if one.high < 1 else "dim"
    return sentences.gain(one.ratio), style


def whatif_line(found: WhatIf | None, is_busy: bool, duration_s: float) -> Line:
    """The line above the list: what was counted, or how to begin."""
    if is_busy:
        return make_line((f" Recording all holds for {duration_s:g} s, then replaying …", "label"))
    if found is None:
        return make_line(
            (f" Enter records all holds for {duration_s:g} s (level all), and predicts", "label")
        )
    if found.refusal is not None:
        return make_line((f" {sentences.no_prediction(found)}", "waiting"))
    return make_line(
        (f" {found.rounds_per_s:,.0f} {sentences.unit(found)} a second", "text"),
        (f"   replay {sentences.gain(found.replayed)} without a change", "label"),
        (f"   {found.cpus_used:.2f} of {found.cpus} CPUs", "label"),
    )


def refused_lines(found: WhatIf, names: Mapping[int, str]) -> list[Line]:
    """A line for each change without a prediction, beside others that have one."""
    refused = found.refused if found.predictions else ()
    said = [sentences.refused_change(one, found, names) for one in refused]
    return [make_line((f" {one}", "dim")) for one in said]
