"""Measures what a program pays for a profile of its own code, by the interval of the samples.

The benchmark program does the same work without and with a profile, in turns. The slow-down is the
median of all turns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct, to_builtins

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.bench import runner
from locktop.collector.extensions.bench.costs import Spread, spread
from locktop.collector.extensions.bench.machine_info import MachineInfo, this_machine
from locktop.collector.extensions.bench.tables import (
    Cells,
    align,
    machine_line,
    markdown_table,
)
from locktop.collector.render.words import units

#: Intervals of a table, each half of the one before; the last one is the smallest that is allowed.
INTERVALS = 5
#: The most that a profile with the smallest interval may cost.
LIMIT = 0.02
_NS = 1e-9


class IntervalCost(Struct, frozen=True):
    """The cost of one interval of one source."""

    source: str
    interval_ns: int
    slow_down: Spread  # time with a profile over time without one, minus 1
    samples_per_s: float


class ProfileCosts(Struct, frozen=True):
    """The whole measurement."""

    machine: MachineInfo
    pairs: int
    rows: tuple[IntervalCost, ...]
    missing: tuple[str, ...]  # sources that cannot be used here


def measure(pairs: int, progress: Callable[[int, int], None] | None = None) -> ProfileCosts:
    """Measure the sources that are clocks. Takes some 1.1 s for each pair.

    Args:
        pairs: runs without and with a profile, for each interval.
        progress: is told how many intervals are done, of how many.

    Raises:
        LocktopError: the benchmark program failed.
    """
    clocks = runner.profile_answer("clocks")
    wanted = [
        (str(clock["name"]), int(clock["number"]), int(clock["min_ns"]) << step)
        for clock in clocks
        if clock["status"] == 0
        for step in reversed(range(INTERVALS))
    ]
    rows = []
    for done, (name, number, interval_ns) in enumerate(wanted):
        if progress:
            progress(done, len(wanted))
        said = runner.profile_answer("profile", str(number), str(interval_ns), str(pairs))
        rows.append(_row(name, interval_ns, said))
    if progress:
        progress(len(wanted), len(wanted))
    return ProfileCosts(
        machine=this_machine(),
        pairs=pairs,
        rows=tuple(rows),
        missing=tuple(str(clock["name"]) for clock in clocks if clock["status"] != 0),
    )


def _row(source: str, interval_ns: int, said: Any) -> IntervalCost:
    ratios = [with_profile / without - 1 for without, with_profile in said["pairs"] if without]
    if not ratios or any(ratio <= -1 for ratio in ratios):
        raise LocktopError(f"locktop-bench could not start a profile of the {source}")
    return IntervalCost(
        source=source,
        interval_ns=interval_ns,
        slow_down=spread(ratios),
        samples_per_s=said["samples"] / max(said["ran_ns"] * _NS, _NS),
    )


def text(costs: ProfileCosts) -> str:
    """Return the measurement as lines of aligned text."""
    return "\n\n".join([_introduction(costs), align(_table(costs)), _outcome(costs)])


def markdown(costs: ProfileCosts) -> str:
    """Return the measurement as a table in Markdown."""
    return "\n\n".join([_introduction(costs), markdown_table(_table(costs)), _outcome(costs)])


def json_object(costs: ProfileCosts) -> dict[str, Any]:
    """Return the measurement as a JSON object."""
    whole: dict[str, Any] = to_builtins(costs)
    return whole


def _introduction(costs: ProfileCosts) -> str:
    turns = units.counted(costs.pairs, "turn")
    return (
        f"{machine_line(costs.machine)} Median (quartiles) of {turns} without and with a profile."
    )


def _table(costs: ProfileCosts) -> Cells:
    lines = [
        [
            row.source,
            units.duration(row.interval_ns * _NS),
            _percent(row.slow_down.median),
            f"{_percent(row.slow_down.low)} to {_percent(row.slow_down.high)}",
            f"{row.samples_per_s:.0f}",
        ]
        for row in costs.rows
    ]
    return Cells(["source", "interval", "slow-down, median", "quartiles", "samples/s"], lines, 1)


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def _verdict(spread: Spread) -> str:
    """Return how a figure lies to LIMIT. A spread around the limit leaves that open."""
    if spread.low <= LIMIT < spread.high:
        return "with quartiles on both sides of"
    return "within" if spread.median <= LIMIT else "over"


def _outcome(costs: ProfileCosts) -> str:
    smallest = {row.source: row for row in costs.rows}
    said = [
        f"{source}: {_percent(row.slow_down.median)} at the smallest interval,"
        f" {_verdict(row.slow_down)} {100 * LIMIT:.0f} %."
        for source, row in smallest.items()
    ]
    said += [f"{source}: not permitted here, or not on this machine." for source in costs.missing]
    return "\n".join(said)
