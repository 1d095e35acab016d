"""Formats the grid of fights for a lock as text and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from locktop.collector.extensions.bench.contention import (
    KEPT,
    LOCKTOP,
    TIMES_WITHOUT,
    Grid,
    PointRow,
    missed_points,
)
from locktop.collector.extensions.bench.costs import Spread
from locktop.collector.extensions.bench.tables import Cells, align, machine_line, markdown_table


def text(grid: Grid) -> str:
    """Return the grid as lines of aligned text."""
    return "\n\n".join([_introduction(grid), align(_table(grid)), _outcome(grid)])


def markdown(grid: Grid) -> str:
    """Return the grid as a table in Markdown."""
    return "\n\n".join([_introduction(grid), markdown_table(_table(grid)), _outcome(grid)])


def _introduction(grid: Grid) -> str:
    rounds = "1 round" if grid.rounds == 1 else f"{grid.rounds} rounds"
    cell = "median (quartiles)" if grid.rounds > 1 else "the only run"
    return (
        f"{machine_line(grid.machine)} {rounds}. Each cell: the rate of all threads,"
        f" in rates of the unprepared run of the same round, {cell}."
    )


def _table(grid: Grid) -> Cells:
    lines: dict[tuple[str, str, str, str], list[str]] = {}
    for row in grid.rows:
        point = row.point
        for library in grid.libraries:
            head = (point.kind, str(point.threads), _duration(point.inside_ns), library)
            if library in row.kept:
                lines.setdefault(head, []).append(_cell(row.kept[library], grid.rounds))
    times_without = [f"{times} times without" for times in TIMES_WITHOUT]
    columns = ["lock", "threads", "inside", "library", *times_without]
    return Cells(columns, [[*words, *cells] for words, cells in lines.items()], 4)


def _outcome(grid: Grid) -> str:
    worst = missed_points(grid)
    said = f"{len(grid.rows) - len(worst)} of {len(grid.rows)} points keep at least {KEPT}."
    return f"{said} {_worst(worst)}" if worst else said


def _worst(rows: Sequence[PointRow]) -> str:
    row = rows[0]
    point = row.point
    return (
        f"The least is {row.kept[LOCKTOP].median:.2f}: {point.kind}, {point.threads} threads,"
        f" {_duration(point.inside_ns)} inside and {point.times_without} times without."
    )


def _duration(ns: int) -> str:
    return f"{ns // 1000} us" if ns >= 1000 else f"{ns} ns"


def _cell(kept: Spread, rounds: int) -> str:
    if rounds == 1:
        return f"{kept.median:.2f}"
    return f"{kept.median:.2f} ({kept.low:.2f}-{kept.high:.2f})"
