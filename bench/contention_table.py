"""Prints the grid of fights for a lock as a table in Markdown.

python bench/contention_table.py GRID.json ...

Each file is the output of `locktop bench --contention --beside before=LIBRARY mutrace=LIBRARY
--json`. Several files with the same points give the median of their medians.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

BUDGET = 0.95

#: (kind, threads, inside_ns) -> times without -> library -> medians, one for each file
Figures = dict[tuple[str, int, int], dict[int, dict[str, list[float]]]]


def figures_of(documents: list[dict[str, Any]]) -> Figures:
    """Return the medians of all documents, by point."""
    found: Figures = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for document in documents:
        for point in document["points"]:
            row = found[point["kind"], point["threads"], point["inside_ns"]]
            for library, kept in point["kept"].items():
                row[point["times_without"]][library].append(kept["median"])
    return found


def cell(kept: dict[str, list[float]], kind: str) -> str:
    """Return what a program keeps: before, now, and with mutrace."""
    said = {library: f"{statistics.median(values):.2f}" for library, values in kept.items()}
    now = statistics.median(kept["locktop"])
    bold = f"**{said['locktop']}**" if round(now, 2) < BUDGET else said["locktop"]
    mutrace = f" / {said['mutrace']}" if kind != "spin" and "mutrace" in said else ""
    return f"{said.get('before', '-')} → {bold}{mutrace}"


def table(figures: Figures) -> str:
    """Return the grid in Markdown."""
    times = sorted({without for row in figures.values() for without in row})
    lines = [
        ["lock", "threads", "inside", *(f"{one} times outside" for one in times)],
        ["---", "---:", "---:", *("---:" for _ in times)],
    ]
    for (kind, threads, inside_ns), row in figures.items():
        inside = f"{inside_ns // 1000} µs" if inside_ns >= 1000 else f"{inside_ns} ns"
        lines.append([kind, str(threads), inside, *(cell(row[one], kind) for one in times)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def outcome(figures: Figures) -> str:
    """Return how many points meet the budget, before and now."""
    points = [kept for row in figures.values() for kept in row.values()]
    met = {
        library: sum(round(statistics.median(kept[library]), 2) >= BUDGET for kept in points)
        for library in ("before", "locktop")
    }
    return (
        f"The budget is {BUDGET} of the unprepared rate at each point."
        f" {met['locktop']} of {len(points)} points meet the budget; before, {met['before']} did."
    )


def main(paths: list[Path]) -> None:
    """Read the grids, then print."""
    documents = [json.loads(path.read_text()) for path in paths]
    figures = figures_of(documents)
    here = documents[0]["machine"]
    machine = (
        f"{here['processor']}, {here['cpus']} CPUs, {here['libc']};"
        f" {documents[0]['rounds']} rounds."
    )
    print(f"{machine} {outcome(figures)}\n\n{table(figures)}")


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
