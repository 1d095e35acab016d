"""The statistics of a gate: trimmed paired t tests on log ratios, of several lock classes.

The unit is the run, because the holds within one run are alike. Each pair of runs gives one
logarithm of the ratio B to A. The gate decides after 6, 9 and 12 pairs. The levels of these tests
add up to ``ALPHA``, so their sum bounds the false alarms, however the tests depend on each other.
Within one test, Holm's procedure does the same for the classes.

The control compares runs of A with runs of A by the same rule. If it is red, the machine changed
during the gate, and B cannot be judged.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from locktop.collector.analysis import student
from locktop.collector.extensions.gate.model import (
    ClassVerdict,
    Comparison,
    GateOutcome,
    RelativeChange,
)

#: The chance of a false alarm, over all tests of a gate.
ALPHA = 0.025
#: The pairs after which the gate may end early, and the part of ``ALPHA`` that each test takes.
_EARLY_TESTS = {6: 0.003, 9: 0.007}
MIN_RUNS, MAX_RUNS = min(_EARLY_TESTS), 12
#: A change that noise may not hide from a gate that says "same".
_MAX_HIDDEN = 0.2
#: Without pairs, the difference between two days counts as a change. So smaller ones are refused.
MIN_UNPAIRED_CHANGE = 0.25

#: The part of the values that is cut off at each end.
_TRIMMED = 0.2

_Runs = Sequence[float | None]


def test_levels(max_runs: int) -> dict[int, float]:
    """Return the levels of the tests by number of pairs. The last test takes what is left.

    Args:
        max_runs: MIN_RUNS to MAX_RUNS.
    """
    early = {runs: level for runs, level in _EARLY_TESTS.items() if runs < max_runs}
    return {**early, max_runs: ALPHA - sum(early.values())}


class Contrast(Struct, frozen=True):
    """The trimmed mean of a log ratio, its standard error and its degrees of freedom."""

    mean: float
    error: float
    freedom: int

    @property
    def p_value(self) -> float:
        """The probability of such a rise, or a greater one, if nothing changed."""
        if not self.error:
            return 0.0 if self.mean > 0 else 1.0
        return student.upper_tail(self.mean / self.error, self.freedom)

    def change(self, level: float) -> RelativeChange:
        """Return the change. Each bound fails with the probability ``level``."""
        margin = self.error * student.quantile(level, self.freedom)
        return RelativeChange(
            *map(_relative_change, (self.mean, self.mean - margin, self.mean + margin))
        )


def _relative_change(log_ratio: float) -> float:
    # The ratio of two durations that the model allows is far below the limit of exp().
    return math.expm1(min(log_ratio, 700.0))


def paired(a: _Runs, b: _Runs) -> Contrast | None:
    """Return the contrast of runs that lie side by side; None if fewer than three pairs have both.

    Args:
        a, b: one figure a run, above 0; None: the run has none.
    """
    ratios = [math.log(y / x) for x, y in zip(a, b, strict=True) if x is not None and y is not None]
    return _trimmed_mean(ratios) if len(ratios) >= 3 else None


def _trimmed_mean(values: Sequence[float]) -> Contrast:
    """Return the trimmed mean of three values or more, with Yuen's standard error.

    Beside other work, a run now and then takes half as long again. The plain mean and its error
    would follow such a run.
    """
    count = len(values)
    cut = int(_TRIMMED * count)
    kept = sorted(values)[cut : count - cut]
    winsorised = [*kept[:1] * cut, *kept, *kept[-1:] * cut]
    squares = statistics.variance(winsorised) * (count - 1)
    freedom = len(kept) - 1
    return Contrast(statistics.fmean(kept), math.sqrt(squares / (len(kept) * freedom)), freedom)


def unpaired(a: _Runs, b: _Runs) -> Contrast | None:
    """Return the contrast of runs of two days; None if one has fewer than three."""
    logs = [[math.log(value) for value in runs if value is not None] for runs in (a, b)]
    if min(map(len, logs)) < 3:
        return None
    before, after = map(_trimmed_mean, logs)
    # The least number of degrees of freedom that Welch's formula can give.
    freedom = min(before.freedom, after.freedom)
    return Contrast(after.mean - before.mean, math.hypot(before.error, after.error), freedom)


def control(a: _Runs) -> Contrast | None:
    """Return the contrast of the second run of A with the first, the fourth with the third..."""
    even = len(a) // 2 * 2
    return paired(a[0:even:2], a[1:even:2])


def holm(p_values: Sequence[float], level: float) -> list[float]:
    """Return the level of each of several tests, so that all together keep to ``level``."""
    levels, left = [level] * len(p_values), len(p_values)
    for index in sorted(range(len(p_values)), key=p_values.__getitem__):
        levels[index] = level / left
        # After the first test that fails all others fail too: their p values are higher.
        left -= p_values[index] <= levels[index] and left > 1
    return levels


def judge(
    comparisons: Iterable[Comparison], level: float, min_change: float, is_paired: bool
) -> tuple[Comparison, ...]:
    """Return the comparisons with their changes, verdicts and controls, from their runs.

    Args:
        comparisons: with the runs so far.
        level: that of this test, see test_levels().
        min_change: a smaller change does not count, as in RelativeChange.
        is_paired: whether the runs of A and B lie side by side.
    """
    entries = list(comparisons)
    contrast = paired if is_paired else unpaired
    contrasts = {index: contrast(entry.a_s, entry.b_s) for index, entry in enumerate(entries)}
    testable = {index: value for index, value in contrasts.items() if value is not None}
    gating = [index for index in testable if entries[index].gates]
    levels = holm([testable[index].p_value for index in gating], level)
    own_levels = dict(zip(gating, levels, strict=True))
    for index, value in testable.items():
        change = value.change(own_levels.get(index, level))
        verdict = _verdict(change, min_change)
        entries[index] = replace(entries[index], change=change, verdict=verdict)
    for index in gating if is_paired else ():
        repeated = control(entries[index].a_s)
        if repeated is not None:
            change = repeated.change(level / len(gating))
            is_red = _verdict(change, min_change) in (ClassVerdict.WORSE, ClassVerdict.BETTER)
            entries[index] = replace(entries[index], control=change, is_control_red=is_red)
    return tuple(entries)


def _verdict(change: RelativeChange, min_change: float) -> ClassVerdict:
    if change.low > 0 and change.estimate > min_change:
        return ClassVerdict.WORSE
    if change.high < 0 and change.estimate < 1 / (1 + min_change) - 1:
        return ClassVerdict.BETTER
    is_certain = change.high < max(_MAX_HIDDEN, min_change)
    return ClassVerdict.SAME if is_certain else ClassVerdict.UNCLEAR


def outcome(comparisons: Iterable[Comparison]) -> GateOutcome:
    """Return the answer of the gate, if it ends now."""
    gating = [entry for entry in comparisons if entry.gates]
    if any(entry.is_control_red for entry in gating):
        return GateOutcome.RED_CONTROL
    verdicts = {entry.verdict for entry in gating}
    if ClassVerdict.WORSE in verdicts:
        return GateOutcome.WORSE
    return (
        GateOutcome.UNCLEAR if ClassVerdict.UNCLEAR in verdicts or not gating else GateOutcome.SAME
    )


def is_decided(comparisons: Iterable[Comparison], min_change: float) -> bool:
    """Return whether more runs could hardly change the answer."""
    gating = [entry for entry in comparisons if entry.gates]
    return any(entry.verdict is ClassVerdict.WORSE for entry in gating) or all(
        entry.change is not None and entry.change.high < min_change for entry in gating
    )
