"""Measures the cost of each operation with each flavour of the library, in turns.

A round runs each case with all flavours, one right after the other. Each round begins with another
flavour, so other work on the machine disturbs all flavours alike. Ratios and differences are taken
within a round, before the median. For one thread alone, the least time of all rounds counts too.
Other work on the machine can only add to a time.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from locktop.collector.extensions.bench.runner import FLAVOURS, UNPREPARED, Case, RunFigures, cost


class Spread(Struct, frozen=True):
    """The median and the quartiles of one figure over all rounds."""

    low: float
    median: float
    high: float


class CostRow(Struct, frozen=True):
    """One case with one flavour, over all rounds."""

    case: Case
    flavour: str  # a key of FLAVOURS
    ns: Spread  # wall time of one operation
    ticks: Spread  # ticks of the processor's counter for one operation
    ratio: Spread  # to the unprepared run of the same round
    more_ns: Spread  # than the unprepared run of the same round
    least_ns: float  # the least wall time of all rounds


class Costs(Struct, frozen=True):
    """The costs of all cases."""

    rows: tuple[CostRow, ...]  # by case, then by flavour
    rounds: int
    ticks_hz: float
    ticks_read_ns: float


#: One round of one case: the figures of each flavour.
Round = dict[str, RunFigures]


def measure(
    cases: Sequence[Case],
    rounds: int,
    seconds: float,
    progress: Callable[[int, int], None] | None = None,
) -> Costs:
    """Measure every case with every flavour ``rounds`` times, about ``seconds`` each.

    ``progress`` is called with the number of finished runs and the number of all runs. Raises
    LocktopError when a run fails.
    """
    rounds_by_case: dict[Case, list[Round]] = {case: [] for case in cases}
    done, run_count = 0, rounds * len(cases) * len(FLAVOURS)
    for number in range(rounds):
        for position, case in enumerate(cases):
            round_: Round = {}
            for flavour in rotate(list(FLAVOURS), number + position):
                round_[flavour] = cost(case, flavour, seconds)
                done += 1
                if progress:
                    progress(done, run_count)
            rounds_by_case[case].append(round_)
    return summary(rounds_by_case)


def summary(rounds_by_case: dict[Case, list[Round]]) -> Costs:
    """Return medians and spreads. All cases have the same number of rounds, at least one."""
    every = [
        figures
        for rounds in rounds_by_case.values()
        for round_ in rounds
        for figures in round_.values()
    ]
    return Costs(
        tuple(
            _row(case, name, rounds) for case, rounds in rounds_by_case.items() for name in FLAVOURS
        ),
        len(next(iter(rounds_by_case.values()))),
        statistics.median(figures.ticks_hz for figures in every),
        statistics.median(figures.ticks_read_ns for figures in every),
    )


def _row(case: Case, flavour: str, rounds: Sequence[Round]) -> CostRow:
    return CostRow(
        case=case,
        flavour=flavour,
        ns=spread(figures[flavour].ns for figures in rounds),
        ticks=spread(figures[flavour].ticks for figures in rounds),
        ratio=spread(figures[flavour].ns / figures[UNPREPARED].ns for figures in rounds),
        more_ns=spread(figures[flavour].ns - figures[UNPREPARED].ns for figures in rounds),
        least_ns=min(figures[flavour].ns for figures in rounds),
    )


def spread(figures: Iterable[float]) -> Spread:
    """Return the median and the quartiles of one or more figures."""
    values = list(figures)
    if len(values) == 1:
        return Spread(values[0], values[0], values[0])
    return Spread(*statistics.quantiles(values, n=4, method="inclusive"))


def rotate(names: list[str], by: int) -> list[str]:
    """Return the names, rotated to the left by ``by``."""
    by %= len(names)
    return names[by:] + names[:by]
