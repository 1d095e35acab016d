"""Measures how much of its rate a program keeps while its threads fight for one lock.

A point is a kind of lock and a number of threads, with a time inside and a time apart. A round runs
each point unprepared and with each library, one right after the other. The ratios are taken within
a round, before the median.
"""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, to_builtins

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.bench import runner
from locktop.collector.extensions.bench.costs import Spread, rotate, spread
from locktop.collector.extensions.bench.machine_info import MachineInfo, this_machine
from locktop.collector.extensions.bench.runner import UNPREPARED, Case, Work

KINDS = ("mutex", "recursive", "write", "spin")
THREADS = (2, 8)
INSIDE_NS = (10, 100, 1_000, 10_000)
#: Times without the lock, in times with the lock.
TIMES_WITHOUT = (0, 1, 3, 10)
#: A program is to keep this part of its rate at each point.
KEPT = 0.95
#: The name of the library at its default level, among the libraries of a grid.
LOCKTOP = "locktop"
#: A profiler of mutexes, which the grid measures beside the library if it is installed.
MUTRACE = "mutrace"
_MUTRACE_KINDS = ("mutex", "recursive", "write")


class Point(Struct, frozen=True):
    """One point of the grid."""

    kind: str  # one of KINDS
    threads: int
    inside_ns: int  # work with the lock
    times_without: int  # work without the lock, in times of inside_ns


class PointRow(Struct, frozen=True):
    """The figures of one point."""

    point: Point
    rate: float  # operations a second of all threads unprepared, the median
    kept: dict[str, Spread]  # by library: rate, in rates of the unprepared run of the same round


class Grid(Struct, frozen=True):
    """The figures of all points."""

    machine: MachineInfo
    rows: tuple[PointRow, ...]
    rounds: int
    libraries: tuple[str, ...]  # the keys of PointRow.kept


def points(only: Sequence[str] | None = None) -> list[Point]:
    """Return the points of these kinds; None for all. Raises LocktopError for an unknown kind."""
    for kind in only or ():
        if kind not in KINDS:
            raise LocktopError(f"the grid has no {kind!r}; it has {', '.join(KINDS)}")
    return [
        Point(kind, threads, inside, times_without)
        for kind in KINDS
        if only is None or kind in only
        for threads in THREADS
        for inside in INSIDE_NS
        for times_without in TIMES_WITHOUT
    ]


def measure(
    chosen: Sequence[Point],
    rounds: int,
    seconds: float,
    beside: Sequence[tuple[str, Path]] = (),
    progress: Callable[[int, int], None] | None = None,
) -> Grid:
    """Measure the points, ``seconds`` for each run.

    Args:
        chosen: the points.
        rounds: runs of each point with each library, at least one.
        seconds: time of one run.
        beside: names and paths of libraries to measure beside this one, each preloaded alone.
        progress: called with the number of finished runs and the number of all runs.

    Raises: LocktopError when a run fails, or on a machine with one CPU.
    """
    here = this_machine()
    if here.cpus < 2:
        raise LocktopError("threads fight for a lock only on two CPUs; this process may use one")
    step_ns = runner.step_ns()
    ways = _ways(beside)
    runs = [
        [name for name in ways if name != MUTRACE or point.kind in _MUTRACE_KINDS]
        for point in chosen
    ]
    done, run_count = 0, rounds * sum(len(names) for names in runs)
    times: list[dict[str, list[float]]] = [{name: [] for name in names} for names in runs]
    for number in range(rounds):
        for position, (point, names) in enumerate(zip(chosen, runs, strict=True)):
            for name in rotate(names, number + position):
                times[position][name].append(_ns(point, ways[name], seconds, step_ns))
                done += 1
                if progress:
                    progress(done, run_count)
    rows = tuple(
        summary(point, times_of_point) for point, times_of_point in zip(chosen, times, strict=True)
    )
    return Grid(here, rows, rounds, tuple(name for name in ways if name != UNPREPARED))


def summary(point: Point, times: dict[str, list[float]]) -> PointRow:
    """Return the row of a point from the ns of one operation, by library and round."""
    unprepared = times[UNPREPARED]
    return PointRow(
        point,
        1e9 / statistics.median(unprepared),
        {
            name: spread(before / ns for before, ns in zip(unprepared, figures, strict=True))
            for name, figures in times.items()
            if name != UNPREPARED
        },
    )


def missed_points(grid: Grid) -> list[PointRow]:
    """Return the points at which the program keeps less than KEPT of its rate, worst first."""
    rows = [row for row in grid.rows if row.kept[LOCKTOP].median < KEPT]
    return sorted(rows, key=lambda row: row.kept[LOCKTOP].median)


def json_object(grid: Grid) -> dict[str, Any]:
    """Return the grid as plain lists and dictionaries; times are in ns, rates a second."""
    return {
        "machine": to_builtins(grid.machine),
        "rounds": grid.rounds,
        "libraries": list(grid.libraries),
        "budget": KEPT,
        "missed": len(missed_points(grid)),
        "points": [
            to_builtins(row.point) | {"rate": row.rate, "kept": to_builtins(row.kept)}
            for row in grid.rows
        ],
    }


def _ways(beside: Sequence[tuple[str, Path]]) -> dict[str, runner.Way]:
    """Return the ways to run a point: unprepared, with the library, with other libraries."""
    ways = {UNPREPARED: runner.way(UNPREPARED), LOCKTOP: runner.way("contended")}
    ways |= {name: runner.way_with(library) for name, library in beside}
    if command := shutil.which(MUTRACE):
        ways[MUTRACE] = runner.way_through(command)
    return ways


def _ns(point: Point, way: runner.Way, seconds: float, step_ns: float) -> float:
    inside = round(point.inside_ns / step_ns)
    work = Work(inside, inside * point.times_without)
    return runner.run(Case(point.kind, "", point.threads), way, seconds, work).ns
