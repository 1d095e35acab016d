"""The list of groups with equal stacks, and the lines about one of them."""

from __future__ import annotations

from collections.abc import Iterator

from locktop.collector.extensions.stacks.model import GroupState, StackGroup
from locktop.collector.extensions.stacks.text_report import LATER_NOTE
from locktop.collector.extensions.stacks.words import StackWords
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.views.cells import exact, fit_right
from locktop.tui.views.detail_parts import frame_lines, labelled
from locktop.tui.views.shorten import fit_location
from locktop.tui.views.styled_line import Line, make_line
from locktop.tui.views.table import Cell, Column

_STYLES = {
    GroupState.DEADLOCKED: "stuck",
    GroupState.WAITING: "waiting",
    GroupState.RUNNING: "running",
    GroupState.ACTIVE: "running",
    GroupState.ASLEEP: "text",
}


def group_columns(words: StackWords) -> tuple[Column[StackGroup], ...]:
    """The columns of the list of groups."""
    return (
        Column("COUNT", 5, lambda group: (exact(len(group.threads)), "text"), fitting=fit_right),
        Column("THREADS", 10, lambda group: (words.name(group), "strong"), grow=2, limit=28),
        Column("STATE", 10, lambda group: (group.state, _style(group))),
        Column(
            "SINCE", 7, lambda group: (words.since(group), "text"), fitting=fit_right, from_width=60
        ),
        Column("WAITS FOR, IN", 12, lambda group: (words.awaited(group), "text"), grow=3, limit=60),
        Column("HELD BY", 10, lambda group: (words.holders(group), "holder"), from_width=100),
        Column("AT", 10, lambda group: _location(words, group), fitting=fit_location, grow=4),
    )


def group_details(index: SnapshotIndex, words: StackWords, group: StackGroup) -> Iterator[Line]:
    """The lines about one group: its threads, what they wait for, and their stack."""
    number = len(group.threads)
    count = f"  {exact(number)} threads" if number > 1 else ""
    name = (f" {words.name(group)}", "strong")
    yield make_line(name, count, "  ", (group.state.value, _style(group)))
    for label, line in zip(("does", *[""] * number), words.what(group), strict=False):
        yield labelled(label, line)
    if group.missing:
        yield labelled("stack", (f"not known: {group.missing}", "waiting"))
    yield from frame_lines(index, group.frames)
    if group.is_later:
        yield make_line((f" {LATER_NOTE}", "dim"))
    yield labelled("thread" if number == 1 else "threads", (words.threads(group), "dim"))


def _style(group: StackGroup) -> str:
    return _STYLES.get(group.state, "dim")


def _location(words: StackWords, group: StackGroup) -> Cell:
    location = words.location(group)
    return (location, "where") if location else (group.missing or "-", "dim")
