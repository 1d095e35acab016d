"""What each operation costs with each flavour of the library, measured in turns.

In a round each case is run with every flavour, one right after the other and beginning with another
one each time, so that what else the machine does falls on all of them alike. Ratios and differences
are taken within a round, before the median. Of one thread alone the least of all rounds is known
too: what else the machine does only adds to it.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from locktop.collector.bench.runner import FLAVOURS, UNPREPARED, Case, RunFigures, cost


@dataclass(frozen=True, slots=True)
class Spread:
    """The median and the quartiles of one figure over all rounds."""

    low: float
    median: float
    high: float


@dataclass(frozen=True, slots=True)
class CostRow:
    """One case with one flavour, over all rounds."""

    case: Case
    flavour: str  # a key of FLAVOURS
    ns: Spread  # wall time of one operation
    ticks: Spread  # the same, of the processor's counter
    ratio: Spread  # to the bare run of the same round
    more_ns: Spread  # than the bare run of the same round
    least_ns: float  # of all rounds


@dataclass(frozen=True, slots=True)
class Costs:
    """All that was measured."""

    rows: tuple[CostRow, ...]  # by case, then by flavour
    rounds: int
    ticks_hz: float
    ticks_read_ns: float


#: One round of one case: what each flavour took.
Round = dict[str, RunFigures]


def measure(
    cases: Sequence[Case],
    rounds: int,
    seconds: float,
    progress: Callable[[int, int], None] | None = None,
) -> Costs:
    """Measure every case with every flavour ``rounds`` times, some ``seconds`` each.

    ``progress`` is called with the runs done and their number. Raises LocktopError when one fails.
    """
    found: dict[Case, list[Round]] = {case: [] for case in cases}
    done, of = 0, rounds * len(cases) * len(FLAVOURS)
    for number in range(rounds):
        for place, case in enumerate(cases):
            one: Round = {}
            for flavour in rotated(list(FLAVOURS), number + place):
                one[flavour] = cost(case, flavour, seconds)
                done += 1
                if progress:
                    progress(done, of)
            found[case].append(one)
    return summary(found)


def summary(found: dict[Case, list[Round]]) -> Costs:
    """Return medians and spreads; every case has the same number of rounds, one at least."""
    every = [figures for rounds in found.values() for one in rounds for figures in one.values()]
    return Costs(
        tuple(_row(case, name, rounds) for case, rounds in found.items() for name in FLAVOURS),
        len(next(iter(found.values()))),
        statistics.median(figures.ticks_hz for figures in every),
        statistics.median(figures.ticks_read_ns for figures in every),
    )


def _row(case: Case, flavour: str, rounds: Sequence[Round]) -> CostRow:
    return CostRow(
        case,
        flavour,
        spread(one[flavour].ns for one in rounds),
        spread(one[flavour].ticks for one in rounds),
        spread(one[flavour].ns / one[UNPREPARED].ns for one in rounds),
        spread(one[flavour].ns - one[UNPREPARED].ns for one in rounds),
        min(one[flavour].ns for one in rounds),
    )


def spread(figures: Iterable[float]) -> Spread:
    """Return median and quartiles, of one figure at least."""
    known = list(figures)
    if len(known) == 1:
        return Spread(known[0], known[0], known[0])
    return Spread(*statistics.quantiles(known, n=4, method="inclusive"))


def rotated(names: list[str], by: int) -> list[str]:
    """Return the names from another one on."""
    by %= len(names)
    return names[by:] + names[:by]
