"""The lines of the call tree, and of the callers and callees of one function (butterfly)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct
from rich.cells import cell_len

from locktop.collector.render.profiles.call_tree import (
    Butterfly,
    Node,
    SourceLine,
    Step,
    StepKind,
    Wing,
)
from locktop.collector.render.profiles.profile import Profile, Weight, WeightUnit
from locktop.tui.views.call_tree import HOT, Row
from locktop.tui.views.cells import bar, count, duration, fit_right, percent
from locktop.tui.views.shorten import fit_location, fit_middle, lock_name_in, strip_arguments
from locktop.tui.views.styled_line import Line, Span, cut, line_text, make_line
from locktop.tui.views.table import Cell, Column

_BAR = 8
_FIGURE = 6
#: No deeper indentation, so that a name always has room.
_DEEPEST = 10
_ARROW = " > "
#: A function with its file and line.
_WITH_FILE = re.compile(r"(\S.*?) [^\s:]+:(\d+)")
#: Cells of the last name of a chain, at least.
_MIN_LOCK = 8
_MARKS = ("▸", "▾")  # closed, open


def figure(value: float, weight: Weight) -> str:
    """A value as at most 6 characters."""
    return duration(value) if weight.unit is WeightUnit.SECONDS else count(value)


def location_of(step: Step, location: SourceLine | None) -> str:
    """``function file:line``, or ``function [module]`` without a known line."""
    if step.kind is StepKind.THREAD:
        return f"held by {step.name}"
    if step.kind is not StepKind.FUNCTION:
        return step.name
    name = strip_arguments(step.name)
    if location is not None:
        file = location.file.replace("\\", "/").rsplit("/", 1)[-1]
        return f"{name} {file}:{location.line}" if location.line else f"{name} {file}"
    has_module = step.module and not step.name.startswith(f"{step.module}+")
    return f"{name} [{step.module}]" if has_module else name


def _node_label(node: Node | Wing) -> str:
    inlined = " (inlined)" if node.inlined else ""
    return location_of(node.step, node.location) + inlined


# ---- the tree ----


def tree_columns(weight: Weight, whole: float) -> tuple[Column[Row], ...]:
    """The columns of the tree; shares are of ``whole``."""

    def share(row: Row) -> Cell:
        return _share(row.node.value, whole)

    def value(row: Row) -> Cell:
        return _value(row.node, weight)

    def own(row: Row) -> Cell:
        node = row.node
        if node.step.kind is StepKind.LOCK:
            return "", "text"
        mine, style = (node.own, "text") if node.value > 0 else (node.own_idle, "dim")
        return (figure(mine, weight), style) if mine > 0 else ("-", "dim")

    return (
        Column("SHARE", _BAR + 5, share),
        Column("IN ALL", _FIGURE, value, fitting=fit_right),
        Column("ITSELF", _FIGURE, own, fitting=fit_right),
        Column("FUNCTION", 20, lambda row: _chain(row, whole), fitting=fit_chain, grow=1),
    )


def _share(value: float, whole: float) -> Cell:
    if value <= 0:
        return "idle", "dim"
    part = value / whole if whole > 0 else 0.0
    return f"{percent(part):>4} {bar(part, _BAR)}", "waiting" if part >= HOT else "text"


def _value(node: Node | Wing | Butterfly, weight: Weight) -> Cell:
    if node.value > 0:
        return figure(node.value, weight), "text"
    return figure(node.idle, weight), "dim"


def _chain(row: Row, whole: float) -> Cell:
    """The names of a row; only the node that the figures are about has its line number."""
    names = [_node_label(node) if node is row.node else _short(node.step) for node in row.nodes]
    mark = "  " if row.open is None else f"{_MARKS[row.open]} "
    again = " (again)" if row.nodes[-1].again else ""
    text = "  " * min(row.depth, _DEEPEST) + mark + _ARROW.join(names) + again
    if row.node.value <= 0:
        return text, "dim"
    return text, "strong" if whole > 0 and row.node.value / whole >= HOT else "text"


def fit_chain(text: str, width: int) -> str:
    """A chain in exactly ``width`` cells, without its first names where it is too long."""
    first, *names = text.split(_ARROW)
    if names and cell_len(text) > width:
        name = first.lstrip().removeprefix(_MARKS[0]).removeprefix(_MARKS[1]).lstrip()
        first = first[: len(first) - len(name)] + "…"
        while len(names) > 2 and cell_len(_ARROW.join([first, *names])) > width:
            del names[0]
        if cell_len(_ARROW.join([first, *names])) > width:
            names = [_function_and_line(name) for name in names]
        room = width - cell_len(_ARROW.join([first, *names[:-1], ""]))
        names[-1] = lock_name_in(names[-1], max(room, _MIN_LOCK))
    return fit_middle(_ARROW.join([first, *names]), width)


def _function_and_line(name: str) -> str:
    match = _WITH_FILE.fullmatch(name)
    return f"{match[1]}:{match[2]}" if match is not None else name


def _short(step: Step) -> str:
    return strip_arguments(step.name) if step.kind is StepKind.FUNCTION else location_of(step, None)


# ---- the butterfly ----


class WingRow(Struct, frozen=True):
    """One row of a butterfly: a caller, the function itself, a callee, or a title."""

    side: str  # "caller", "itself", "callee", "title"
    wing: Wing | None = None
    title: str = ""


class TreeWords(Struct, frozen=True):
    """The titles of the parts of a tree."""

    caption: str = ""  # before the weight; ends with a blank
    top: str = "no caller: a thread begins there"


def wing_rows(butterfly: Butterfly, idle: bool, words: TreeWords | None = None) -> list[WingRow]:
    """The rows from the top: callers, the function, callees."""

    def visible(side: str, wings: Sequence[Wing]) -> list[WingRow]:
        return [WingRow(side, wing) for wing in wings if wing.value > 0 or (idle and wing.idle > 0)]

    callers = visible("caller", butterfly.callers)
    callees = visible("callee", butterfly.callees)
    waits = any(wing.step.kind is StepKind.LOCK for wing in butterfly.callees)
    below = "calls and waits for" if waits else "calls"
    itself = Wing(butterfly.step, butterfly.value, butterfly.idle, butterfly.location)
    return [
        WingRow("title", title="called by" if callers else (words or TreeWords()).top),
        *callers,
        WingRow("itself", itself),
        *([WingRow("title", title=below)] if callees else []),
        *callees,
    ]


def wing_columns(butterfly: Butterfly, weight: Weight) -> tuple[Column[WingRow], ...]:
    """The columns of a butterfly; shares are of the function."""

    def share(row: WingRow) -> Cell:
        return _share(row.wing.value, butterfly.value) if row.wing is not None else ("", "text")

    def value(row: WingRow) -> Cell:
        return _value(row.wing, weight) if row.wing is not None else ("", "text")

    return (
        Column("OF IT", _BAR + 5, share),
        Column("IN ALL", _FIGURE, value, fitting=fit_right),
        Column("FUNCTION", 20, _wing_name, fitting=fit_location, grow=1),
    )


def _wing_name(row: WingRow) -> Cell:
    if row.wing is None:
        return row.title, "label"
    if row.side == "itself":
        return f"● {_node_label(row.wing)}", "strong"
    return f"    {_node_label(row.wing)}", "dim" if row.wing.value <= 0 else "text"


# ---- above both ----


def call_tree_headline(
    profile: Profile, weight: Weight, root: Node, idle: bool, width: int
) -> Line:
    """The line above the tree: the weight, its sum, and what the tree leaves out."""
    spans: list[Span | str] = [(" By ", "label"), (weight.says, "strong"), f" {_all(root, weight)}"]
    if profile.estimate:
        spans.append((" an estimate: no whole stacks ", "flag"))
    if root.idle > 0:
        state = "shown, not added" if idle else "hidden"
        spans.append((f"  for work {figure(root.idle, weight)}, {state}", "dim"))
    notes = profile.notes(weight.name)
    if notes:
        more = f" (and {len(notes) - 1} more, key ?)" if len(notes) > 1 else ""
        note = f"{notes[0]}{more}", "waiting"
        spans += ["  ", note]
        # Of an empty tree, the note says all.
        if root.value <= 0 and len(line_text(make_line(*spans))) > width:
            spans = [" ", note]
    return cut(make_line(*spans), width)


def _all(root: Node, weight: Weight) -> str:
    return figure(root.value, weight) if root.value > 0 else "nothing"
