"""The shortest output for runs of cells: their order, the movements and the styles between them."""

from __future__ import annotations

from collections.abc import Iterable

from locktop.tui.terminal.cell_runs import Position, Run, movement
from locktop.tui.terminal.description import Abilities
from locktop.tui.terminal.sgr import DEFAULT, Attributes, blank, change
from locktop.tui.terminal.short_text import shorten

#: So many runs are shorter by style, as they have few styles.
_MANY_RUNS = 30


def shortest_output(
    runs: list[Run], end: Position | None, abilities: Abilities, style: Attributes = DEFAULT
) -> str:
    """Return the output of runs, in the order that makes it shortest.

    The style is the default afterwards, and the cursor is at ``end`` unless that is None.

    Args:
        runs: the runs, in any order.
        end: the position of the cursor afterwards.
        abilities: those of the terminal.
        style: the style before.
    """
    for run in runs:
        if not run.is_odd:
            run.text = shorten(run.text, abilities)
    # The later runs paint over the cells that an odd character leaves beside it.
    by_style = _output(sorted(runs, key=_style_order), end, abilities.feeds, style)
    if len(runs) > _MANY_RUNS:
        return by_style
    by_row = _output(sorted(runs, key=lambda run: not run.is_odd), end, abilities.feeds, style)
    return min(by_row, by_style, key=byte_count)


def byte_count(output: str) -> int:
    """The bytes that the terminal gets."""
    return len(output.encode())


def _style_order(run: Run) -> tuple[object, ...]:
    """The runs of a style after each other. Of a background, those without a foreground go first.

    So an erasure goes before the texts on its background.
    """
    style = run.style
    first = not run.is_odd, not run.goes_first
    return (*first, style.background, sorted(style.flags), style.foreground, run.y, run.x)


def _output(runs: Iterable[Run], end: Position | None, feeds: bool, style: Attributes) -> str:
    out: list[str] = []
    position: Position | None = None
    for run in runs:
        out.append(movement(position, (run.y, run.x), feeds))
        if run.style != (blank(style) if run.is_blank else style):
            out.append(change(style, run.style))
            style = run.style
        out.append(run.text)
        position = run.behind
    if style != DEFAULT:
        out.append(change(style, DEFAULT))
    if end is not None:
        out.append(movement(position, end, feeds))
    return "".join(out)
