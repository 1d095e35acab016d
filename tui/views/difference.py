"""The lines of a difference of two call trees."""

from __future__ import annotations

from locktop.collector.render.profiles.call_tree import StepKind
from locktop.collector.render.profiles.call_tree_difference import DifferenceNode, DifferenceRow
from locktop.tui.views.call_tree_rows import fit_chain, location_of
from locktop.tui.views.cells import count, duration, fit_right
from locktop.tui.views.shorten import strip_arguments
from locktop.tui.views.table import Cell, Column

_DEEPEST = 10
_ARROW = " > "


def difference_columns() -> tuple[Column[DifferenceRow], ...]:
    """The columns: how much more, the figures of both spans, and the function."""
    return (
        Column("MORE/s", 7, _more_wait, fitting=fit_right),
        Column("A WAIT/s", 8, lambda row: _seconds(row.node.before.wait), fitting=fit_right),
        Column("B WAIT/s", 8, lambda row: _seconds(row.node.after.wait), fitting=fit_right),
        Column("WAITS/s", 7, _more_count, fitting=fit_right),
        Column("FUNCTION", 20, _chain, fitting=fit_chain, grow=1),
    )


def signed(value: float, text: str) -> str:
    """Return a figure with its sign; a difference of nothing is ``=``."""
    if text in ("0", "-") or not value:
        return "="
    return ("+" if value > 0 else "-") + text


def _more_wait(row: DifferenceRow) -> Cell:
    value = row.node.more_wait
    return signed(value, duration(abs(value))), _style(value)


def _more_count(row: DifferenceRow) -> Cell:
    value = row.node.more_count
    return signed(value, count(abs(value))), _style(value)


def _style(value: float) -> str:
    return "waiting" if value > 0 else "running" if value < 0 else "dim"


def _seconds(value: float) -> Cell:
    return (duration(value), "text") if value > 0 else ("-", "dim")


def _chain(row: DifferenceRow) -> Cell:
    names = [_short(node) for node in row.nodes[:-1]]
    names.append(location_of(row.node.step, row.node.location))
    return "  " * min(row.depth, _DEEPEST) + _ARROW.join(names), "text"


def _short(node: DifferenceNode) -> str:
    if node.step.kind is StepKind.FUNCTION:
        return strip_arguments(node.step.name)
    return location_of(node.step, None)
