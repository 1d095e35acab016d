"""Measures the begin and the end of an instrumented function, with each way of the library."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct, to_builtins

from locktop.collector.extensions.bench.costs import Spread, rotate, spread
from locktop.collector.extensions.bench.runner import UNPREPARED, call_pair_ns, environment

#: The way: the flavour of the library, and its variables.
WAYS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "glibc": (UNPREPARED, {}),
    "empty": ("nop", {}),
    "off": ("contended", {"LOCKTOP_CALLS": "off"}),
    "filtered": ("contended", {"LOCKTOP_CALLS_MATCH": "no_such_function"}),
    "counted": ("contended", {}),
}
MEANINGS: Mapping[str, str] = {
    "glibc": "the empty functions of glibc",
    "empty": "the empty hooks of the library that does nothing",
    "off": "LOCKTOP_CALLS=off",
    "filtered": "LOCKTOP_CALLS_MATCH does not name the function",
    "counted": "count, times and lock wait",
}
#: Nanoseconds more than with empty hooks.
BUDGETS: Mapping[str, float] = {"filtered": 8.0, "counted": 40.0}
_BASE = "empty"


class CallCost(Struct, frozen=True):
    """The cost of one begin and one end of a function, with one way."""

    way: str  # a key of WAYS
    ns: Spread  # with the call and the return of the function itself
    more_ns: Spread  # than with empty hooks in the same round
    least_more_ns: float  # the least of all rounds, less the least with empty hooks
    budget_ns: float | None  # of least_more_ns


def measure(
    rounds: int, seconds: float, progress: Callable[[int, int], None] | None = None
) -> list[CallCost]:
    """Measure each way ``rounds`` times for ``seconds``, in turns. Raises LocktopError."""
    figures_by_way: dict[str, list[float]] = {way: [] for way in WAYS}
    done, run_count = 0, rounds * len(WAYS)
    for number in range(rounds):
        for way in rotate(list(WAYS), number):
            flavour, variables = WAYS[way]
            figures_by_way[way].append(call_pair_ns({**environment(flavour), **variables}, seconds))
            done += 1
            if progress:
                progress(done, run_count)
    return [
        CallCost(
            way=way,
            ns=spread(figures),
            more_ns=spread(
                ns - base for ns, base in zip(figures, figures_by_way[_BASE], strict=True)
            ),
            least_more_ns=min(figures) - min(figures_by_way[_BASE]),
            budget_ns=BUDGETS.get(way),
        )
        for way, figures in figures_by_way.items()
    ]


def json_object(costs: list[CallCost]) -> object:
    """Return the figures as objects for JSON."""
    return {"format": "locktop.bench.calls", "version": 1, "rows": to_builtins(costs)}


def text(costs: list[CallCost], markdown: bool = False) -> str:
    """Return the table, for a terminal or as Markdown."""
    rows = [("way", "ns a pair", "more than empty", "budget", "meaning")]
    for cost in costs:
        budget = "" if cost.budget_ns is None else f"{cost.budget_ns:.0f} ns"
        if cost.budget_ns is not None:
            budget += " met" if cost.least_more_ns <= cost.budget_ns else " missed"
        more = f"{cost.least_more_ns:+.1f} ns"
        rows.append((cost.way, f"{cost.ns.median:.1f}", more, budget, MEANINGS[cost.way]))
    if markdown:
        rule = "|---|---:|---:|---|---|"
        lines = [f"| {' | '.join(row)} |" for row in rows]
        return "\n".join([lines[0], rule, *lines[1:]])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
