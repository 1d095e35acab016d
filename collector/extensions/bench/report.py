"""Runs the whole bench and collects its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct, to_builtins

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.bench import budgets, costs, machine_info, runner, trace_growth
from locktop.collector.extensions.bench.budgets import Verdict
from locktop.collector.extensions.bench.costs import CostRow, Costs
from locktop.collector.extensions.bench.machine_info import MachineInfo
from locktop.collector.extensions.bench.runner import Case
from locktop.collector.extensions.bench.trace_growth import Growth

#: The name of the measurement of the trace's growth, beside the names of primitives.
TRACE = "trace"


class Effort(Struct, frozen=True):
    """The amount of measurement."""

    rounds: int
    seconds: float  # for each run
    max_threads: int


QUICK = Effort(1, 0.01, 2)
USUAL = Effort(5, 0.025, 2)
FULL = Effort(11, 0.1, 1000)


class BenchReport(Struct, frozen=True):
    """The results of one bench."""

    machine: MachineInfo
    costs: Costs | None  # None if only the trace was measured
    growth: tuple[Growth, ...]
    verdicts: tuple[Verdict, ...]


def measure(
    effort: Effort,
    only: Sequence[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> BenchReport:
    """Run the bench.

    Args:
        effort: the amount of measurement.
        only: names of primitives, or TRACE; None for all.
        progress: called with the number of finished runs and the number of all runs.

    Raises: LocktopError when a run fails, or for an unknown name.
    """
    here = machine_info.this_machine()
    cases = _choose_cases(runner.cases(), only, effort.max_threads)
    measured = costs.measure(cases, effort.rounds, effort.seconds, progress) if cases else None
    growths = trace_growth.measure() if only is None or TRACE in only else ()
    return BenchReport(here, measured, growths, tuple(budgets.verdicts(measured, growths)))


def _choose_cases(
    cases: Sequence[Case], only: Sequence[str] | None, max_threads: int
) -> list[Case]:
    names = [*dict.fromkeys(case.primitive for case in cases), TRACE]
    for name in only or ():
        if name not in names:
            raise LocktopError(
                f"nothing to measure is called {name!r}; there are {', '.join(names)}"
            )
    return [
        case
        for case in cases
        if (only is None or case.primitive in only) and case.threads <= max_threads
    ]


def json_object(report: BenchReport) -> dict[str, Any]:
    """Return the report as plain lists and dictionaries; times are in nanoseconds or ticks."""
    costs = report.costs
    return {
        "machine": to_builtins(report.machine),
        "rounds": costs.rounds if costs else 0,
        "ticks_hz": costs.ticks_hz if costs else None,
        "ticks_read_ns": costs.ticks_read_ns if costs else None,
        "costs": [_row_json(row) for row in costs.rows] if costs else [],
        "trace": [
            to_builtins(growth)
            | {
                "bytes_each": growth.bytes_each,
                "times_longer": trace_growth.times_longer(report.growth, growth),
            }
            for growth in report.growth
        ],
        "budgets": [to_builtins(verdict) for verdict in report.verdicts],
    }


def _row_json(row: CostRow) -> dict[str, Any]:
    parts: dict[str, Any] = to_builtins(row)
    case: dict[str, Any] = parts.pop("case")
    return case | parts
