"""Compares the measured costs with their budgets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from locktop.collector.extensions.bench.costs import CostRow, Costs
from locktop.collector.extensions.bench.runner import UNPREPARED
from locktop.collector.extensions.bench.trace_growth import Growth, times_longer


class Budget(Struct, frozen=True):
    """The largest cost of a case with one flavour. A case meets its budget by either limit."""

    primitive: str
    threads: int
    flavour: str
    ratio: float | None  # to the unprepared run
    more_ns: float | None  # than the unprepared run
    why: str  # reason of a miss; {read}: one reading of the processor's counter, ns


class Verdict(Struct, frozen=True):
    """The result for one budget."""

    what: str
    limit: str
    measured: str
    missed_by: str  # "" when it was met
    why: str  # "" when it was met


_DORMANT = "both hooks look at the level before they go on"
_COUNTED = "stores a counter and an entry of the held list; no clock"
_NESTED = _COUNTED + "; adds up the held locks, and searches for that lock order"
_CLOCK = "takes the slow path, and reads the counter {times} for each pair: {{read:.0f}} ns each"
_ONCE, _TWICE = _CLOCK.format(times="once"), _CLOCK.format(times="twice")
_CONTENDED = (
    "where they meet, the clock is read twice and the wait is counted before the lock is free again"
)
_WAITED = (
    "reads the counter twice ({read:.0f} ns each), compares 13 frames and their frame pointers,"
    " writes a record"
)
_SLEPT = _WAITED + ". After a sleep little of that is in the nearest cache."
_WHOLE = "each wait is recorded with the hold that it waited for: 5 % that wait make 10 % of all"
#: Two contending threads may lose a twentieth of their rate.
_CONTENDED_RATIO = 1 / 0.95

BUDGETS = (
    Budget("mutex", 1, "dormant", 1.1, None, _DORMANT),
    Budget("mutex", 1, "contended", 1.35, 4, _COUNTED),
    Budget("nested", 1, "contended", 1.35, 4, _NESTED),
    Budget("mutex", 1, "blocks", 2.3, None, _ONCE),
    Budget("mutex", 1, "all", 4.0, None, _TWICE),
    Budget("mutex", 2, "contended", _CONTENDED_RATIO, None, _CONTENDED),
    Budget("deep-timeout", 1, "contended", None, 100, _WAITED),
    Budget("deep-wait", 2, "contended", None, 100, _SLEPT),
)
#: A trace must reach back this many times further than a trace of all acquisitions.
LONGER = 20.0


def verdicts(costs: Costs | None, growths: Sequence[Growth]) -> list[Verdict]:
    """Return the verdicts on all budgets that have measured costs."""
    rows = {(row.case.primitive, row.case.threads, row.flavour): row for row in _rows(costs)}
    verdicts_ = []
    for budget in BUDGETS:
        row = rows.get((budget.primitive, budget.threads, budget.flavour))
        unprepared = rows.get((budget.primitive, budget.threads, UNPREPARED))
        if costs and row and unprepared:
            verdicts_.append(check_row(budget, row, unprepared, costs.ticks_read_ns))
    return verdicts_ + [
        check_growth(growths, growth) for growth in growths if growth.level != "all"
    ]


def _rows(costs: Costs | None) -> Iterable[CostRow]:
    return costs.rows if costs else ()


def check_row(budget: Budget, row: CostRow, unprepared: CostRow, read_ns: float) -> Verdict:
    """Compare one row with its budget.

    For several threads the medians decide. For one thread the least time of all rounds decides.
    Work on the other hardware thread of the processor can only make that time longer.
    """
    ratio, more, said = row.ratio.median, row.more_ns.median, ""
    if budget.threads == 1:
        said = f"; medians {ratio:.2f}, {more:.0f} ns"
        ratio, more = row.least_ns / unprepared.least_ns, row.least_ns - unprepared.least_ns
    over, limits = [], []
    if budget.ratio is not None:
        limits.append(f"{budget.ratio:.2f} times unprepared")
        over.append((ratio > budget.ratio, f"{ratio - budget.ratio:.2f} times unprepared"))
    if budget.more_ns is not None:
        limits.append(f"{budget.more_ns:.0f} ns more")
        over.append((more > budget.more_ns, f"{more - budget.more_ns:.0f} ns"))
    missed = all(is_over for is_over, _ in over)
    threads = "1 thread" if budget.threads == 1 else f"{budget.threads} threads"
    return Verdict(
        f"{budget.primitive}, {threads}, {budget.flavour}",
        "at most " + " or ".join(limits),
        f"{ratio:.2f} times unprepared, {more:.0f} ns more{said}",
        " or ".join(text for _, text in over) if missed else "",
        budget.why.format(read=read_ns) if missed else "",
    )


def check_growth(growths: Sequence[Growth], growth: Growth) -> Verdict:
    """Compare the growth of a trace with its budget."""
    longer = times_longer(growths, growth)
    missed = longer < LONGER
    return Verdict(
        f"trace, {growth.mix}, {growth.level}",
        f"at least {LONGER:.0f} times longer than all",
        f"{longer:.1f} times",
        f"{LONGER - longer:.1f} times" if missed else "",
        _WHOLE if missed else "",
    )
