"""How often a process is sampled: as often as looks leave time for it."""

from __future__ import annotations

import pytest

from locktop.collector.sources.sampling.cpu_budget import SHORTEST_S, CpuBudget


def after_scans(*others_s: float) -> CpuBudget:
    """Looks each half a second, and what the tool used from each to the next one beside samples."""
    spent, used_s = CpuBudget(), 7.0
    for sleep_key, one in enumerate((0.0, *others_s), 1):
        used_s += one
        spent.note_scan(sleep_key / 2, used_s)
    return spent


def pause_s(spent: CpuBudget, took_s: float) -> float:
    """After a sample that took so long."""
    spent.note_sample(took_s)
    return spent.pause_s


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
    spent = after_scans(0.0)
    for _ in range(5):
        spent.note_sample(0.002)
    spent.note_scan(1.5, 7.0 + 5 * 0.002 + 0.015)
    assert spent.pause_s == pytest.approx(0.002 / 0.015)


def test_a_quieter_interval_counts_at_once() -> None:
    """Looks take samples, too: there may be none in between, which would tell."""
    spent = after_scans(9.0)
    spent.note_sample(0.001)
    assert spent.pause_s == pytest.approx(0.5)
    spent.note_scan(1.5, 7.0 + 9.0 + 0.001)
    assert spent.pause_s == pytest.approx(0.05)
