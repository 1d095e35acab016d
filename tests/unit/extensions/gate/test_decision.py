"""The decisions of a gate, by the arithmetic and by simulation."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from scipy import stats
from unit.builders.gate_results import LONGER, NOISY, STEADY, comparison

from locktop.collector.extensions.gate import decision
from locktop.collector.extensions.gate.model import ClassVerdict, Comparison, GateOutcome, Quantity

SHORTER = tuple(value / 1.3 for value in STEADY)


def judge(*entries: Comparison, min_change: float = 0.05) -> tuple[Comparison, ...]:
    return decision.judge(entries, decision.ALPHA, min_change, True)


def simulated(
    rng: random.Random,
    growth: float,
    noise: float,
    classes: int = 1,
    drift: float = 0.0,
    slow: float = 0.0,
) -> GateOutcome:
    """Return the answer of one gate over invented runs.

    Args:
        rng: the source of the noise.
        growth: of B in the first class, 0.2 for 20 %.
        noise: the standard deviation of the logarithm of a run.
        classes: how many lock classes there are.
        drift: how much each run is longer than the run before.
        slow: the part of the runs that take half as long again.
    """
    min_change = 0.05
    a: list[list[float]] = [[] for _ in range(classes)]
    b: list[list[float]] = [[] for _ in range(classes)]
    levels, runs = decision.test_levels(12), 0
    for pair in range(12):
        for name in "AB" if pair % 2 == 0 else "BA":
            runs += 1
            slowness = 1.5 if rng.random() < slow else 1.0
            for number in range(classes):
                factor = slowness * (1 + growth if name == "B" and number == 0 else 1.0)
                value = factor * math.exp(rng.gauss(0, noise) + drift * runs) / 1e6
                (a if name == "A" else b)[number].append(value)
        if pair + 1 in levels:
            entries = [comparison(a[n], b[n], f"lock{n}") for n in range(classes)]
            answers = decision.judge(entries, levels[pair + 1], min_change, True)
            if decision.is_decided(answers, min_change):
                break
    return decision.outcome(answers)


def red_share(gates: int, **how: float) -> float:
    rng = random.Random(5)
    answers = [simulated(rng, **how) for _ in range(gates)]  # type: ignore[arg-type]
    return answers.count(GateOutcome.WORSE) / gates


@pytest.mark.parametrize(("noise", "classes"), [(0.02, 1), (0.1, 1), (0.5, 1), (0.3, 8)])
def test_unchanged_builds_are_rarely_red(noise: float, classes: int) -> None:
    assert (
        red_share(500 if classes == 1 else 200, growth=0.0, noise=noise, classes=classes) <= 0.035
    )


@pytest.mark.parametrize(("growth", "noise", "bar"), [(0.2, 0.08, 0.95), (0.1, 0.05, 0.8)])
def test_a_longer_hold_is_seen(growth: float, noise: float, bar: float) -> None:
    assert red_share(500, growth=growth, noise=noise) >= bar


def test_a_few_slow_runs_hide_no_longer_hold() -> None:
    assert red_share(500, growth=0.0, noise=0.01, slow=0.2) <= 0.035
    assert red_share(500, growth=0.1, noise=0.01, slow=0.1) >= 0.8


def test_a_machine_that_slows_down_is_not_red() -> None:
    assert red_share(500, growth=0.0, noise=0.03, drift=0.02) <= 0.035


def test_runs_of_a_that_differ_make_the_control_red() -> None:
    rng = random.Random(6)
    answers = [simulated(rng, 0.0, 0.01, drift=0.1) for _ in range(100)]
    assert answers.count(GateOutcome.RED_CONTROL) >= 90
    assert GateOutcome.WORSE not in answers


def test_the_levels_of_the_tests_add_up() -> None:
    for runs in range(decision.MIN_RUNS, decision.MAX_RUNS + 1):
        levels = decision.test_levels(runs)
        assert max(levels) == runs
        assert sum(levels.values()) == pytest.approx(decision.ALPHA)
    assert list(decision.test_levels(12)) == [6, 9, 12]


def test_the_paired_contrast_is_that_of_scipy() -> None:
    rng = random.Random(7)
    for count, cut in ((6, 1), (9, 1), (12, 2)):
        a = [rng.lognormvariate(0, 0.3) for _ in range(count)]
        b = [rng.lognormvariate(0.1, 0.3) for _ in range(count)]
        contrast = decision.paired(a, b)
        assert contrast is not None
        ratios = [math.log(y / x) for x, y in zip(a, b, strict=True)]
        kept = count - 2 * cut
        assert contrast.mean == pytest.approx(stats.trim_mean(ratios, 0.2))
        assert contrast.freedom == kept - 1
        # scipy has the error of Tukey and McLaughlin, a little smaller than Yuen's.
        tukey = stats.mstats.trimmed_stde(ratios, (cut / count, cut / count))
        factor = math.sqrt((count - 1) * kept / ((kept - 1) * count))
        assert contrast.error == pytest.approx(factor * tukey)
        t = contrast.mean / contrast.error
        assert contrast.p_value == pytest.approx(stats.t.sf(t, kept - 1))
        change, margin = contrast.change(0.025), stats.t.isf(0.025, kept - 1) * contrast.error
        bounds = [math.expm1(contrast.mean + sign * margin) for sign in (-1, 1)]
        assert [change.low, change.high] == pytest.approx(bounds)


def test_the_unpaired_contrast_is_no_bolder_than_that_of_scipy() -> None:
    rng = random.Random(8)
    for _ in range(50):
        a = [rng.lognormvariate(0, 0.3) for _ in range(7)]
        b = [rng.lognormvariate(0.4, 0.1) for _ in range(12)]
        contrast = decision.unpaired(a, b)
        assert contrast is not None
        logs = [[math.log(value) for value in runs] for runs in (b, a)]
        expected = stats.ttest_ind(*logs, equal_var=False, alternative="greater", trim=0.2)
        assert contrast.mean / contrast.error == pytest.approx(expected.statistic)
        if contrast.mean > 0:
            assert contrast.p_value >= expected.pvalue


@pytest.mark.parametrize(
    ("p_values", "levels"),
    [
        ([], []),
        ([0.2], [0.06]),
        ([0.001, 0.5, 0.002], [0.02, 0.06, 0.03]),
        ([0.021, 0.001, 0.9], [0.03, 0.02, 0.06]),
        ([0.05, 0.04, 0.03], [0.02, 0.02, 0.02]),
    ],
)
def test_holm_lowers_the_levels_step_by_step(
    p_values: Sequence[float], levels: Sequence[float]
) -> None:
    assert decision.holm(p_values, 0.06) == pytest.approx(list(levels))


def test_verdicts() -> None:
    entries = judge(
        comparison(STEADY, LONGER),
        comparison(STEADY, STEADY[::-1]),
        comparison(STEADY, SHORTER),
        comparison(STEADY, NOISY),
    )
    worse, same, better, unclear = ClassVerdict.WORSE, "same", "better", "unclear"
    assert [entry.verdict for entry in entries] == [worse, same, better, unclear]
    assert decision.outcome(entries) is GateOutcome.WORSE
    assert decision.outcome(entries[1:]) is GateOutcome.UNCLEAR
    assert decision.outcome(entries[1:3]) is GateOutcome.SAME
    assert decision.outcome(()) is GateOutcome.UNCLEAR


def test_a_change_below_the_least_one_is_the_same() -> None:
    [entry] = judge(comparison(STEADY, LONGER), min_change=0.4)
    assert entry.verdict is ClassVerdict.SAME
    assert entry.change is not None
    assert entry.change.low > 0.25


def test_runs_without_noise_have_an_answer() -> None:
    [entry] = judge(comparison((1.0,) * 6, (1.5,) * 6))
    assert entry.verdict is ClassVerdict.WORSE
    [entry] = judge(comparison((1.0,) * 6, (1.0,) * 6))
    assert entry.verdict is ClassVerdict.SAME


def test_runs_without_a_figure_make_no_pairs() -> None:
    lacking = [None, None, None, None, *STEADY[4:]]
    [entry] = judge(comparison(lacking, LONGER))
    assert (entry.change, entry.verdict) == (None, ClassVerdict.UNCLEAR)
    [entry] = judge(comparison([None, *STEADY[1:]], LONGER))
    assert entry.verdict is ClassVerdict.WORSE


def test_waits_count_on_request_alone() -> None:
    hold = comparison(STEADY, STEADY[::-1])
    wait = comparison(STEADY, LONGER, quantity=Quantity.WAIT)
    entries = judge(hold, wait)
    assert entries[1].verdict is ClassVerdict.WORSE
    assert decision.outcome(entries) is GateOutcome.SAME
    assert decision.is_decided(entries, 0.05)
    assert decision.outcome(judge(hold, replace(wait, gates=True))) is GateOutcome.WORSE


def test_a_red_control_outweighs_a_worse_class() -> None:
    rising = [1e-3 * 1.3**number for number in range(12)]
    longer = [2 * value for value in rising]
    [entry] = judge(comparison(rising, longer))
    assert entry.verdict is ClassVerdict.WORSE
    assert entry.is_control_red
    assert decision.outcome([entry]) is GateOutcome.RED_CONTROL
