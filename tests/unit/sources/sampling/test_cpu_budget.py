"""Scans leave CPU time, and samples of the process get the time that is left."""

from __future__ import annotations

import pytest

from locktop.collector.sources.sampling.cpu_budget import SHORTEST_S, CpuBudget


def after_scans(*others_s: float) -> CpuBudget:
    """A budget after scans each half second; ``others_s``: other CPU time between the scans."""
    budget, used_s = CpuBudget(), 7.0
    for sleep_key, one in enumerate((0.0, *others_s), 1):
        used_s += one
        budget.note_scan(sleep_key / 2, used_s)
    return budget


def pause_s(budget: CpuBudget, took_s: float) -> float:
    """The pause after a sample of that duration."""
    budget.note_sample(took_s)
    return budget.pause_s


def test_samples_take_two_percent_without_scans() -> None:
    assert pause_s(CpuBudget(), 0.001) == pytest.approx(0.05)


def test_the_sampling_interval_has_both_bounds() -> None:
    assert CpuBudget().pause_s == SHORTEST_S
    assert pause_s(CpuBudget(), 0.0) == SHORTEST_S
    assert pause_s(CpuBudget(), 10.0) == 2.0


@pytest.mark.parametrize(
    ("others_s", "share"), [(0.0, 0.02), (0.01, 0.02), (0.015, 0.015), (0.02, 0.005), (9.0, 0.002)]
)
def test_the_share_of_samples_follows_the_other_cpu_time(others_s: float, share: float) -> None:
    assert pause_s(after_scans(9.0, others_s), 0.001) == pytest.approx(0.001 / share)


def test_one_scan_changes_no_interval() -> None:
    assert pause_s(after_scans(), 0.001) == pytest.approx(0.05)


def test_samples_do_not_count_as_other_cpu_time() -> None:
    budget = after_scans(0.0)
    for _ in range(5):
        budget.note_sample(0.002)
    budget.note_scan(1.5, 7.0 + 5 * 0.002 + 0.015)
    assert budget.pause_s == pytest.approx(0.002 / 0.015)


def test_a_quieter_interval_counts_at_once() -> None:
    """A scan takes a sample too, so there may be no sample between two scans."""
    budget = after_scans(9.0)
    budget.note_sample(0.001)
    assert budget.pause_s == pytest.approx(0.5)
    budget.note_scan(1.5, 7.0 + 9.0 + 0.001)
    assert budget.pause_s == pytest.approx(0.05)
