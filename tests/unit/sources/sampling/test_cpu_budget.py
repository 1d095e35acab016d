"""How often a process is sampled: as often as looks leave time for it."""

from __future__ import annotations

import pytest

from locktop.collector.sources.sampling.cpu_budget import SHORTEST_S, CpuBudget


def after_scans(*others_s: float) -> CpuBudget:
    """Looks each half a second, and what the tool used from each to the next one beside samples."""
    spent, used_s = CpuBudget(), 7.0
    for number, one in enumerate((0.0, *others_s), 1):
        used_s += one
        spent.note_scan(number / 2, used_s)
    return spent


def pause_s(spent: CpuBudget, took_s: float) -> float:
    """After a sample that took so long."""
    spent.note_sample(took_s)
    return spent.pause_s


def test_without_looks_samples_take_two_percent() -> None:
    assert pause_s(CpuBudget(), 0.001) == pytest.approx(0.05)


def test_neither_too_often_nor_too_seldom() -> None:
    assert CpuBudget().pause_s == SHORTEST_S
    assert pause_s(CpuBudget(), 0.0) == SHORTEST_S
    assert pause_s(CpuBudget(), 10.0) == 2.0


@pytest.mark.parametrize(
    ("others_s", "share"), [(0.0, 0.02), (0.01, 0.02), (0.015, 0.015), (0.02, 0.005), (9.0, 0.002)]
)
def test_the_rest_of_the_tool_leaves_what_it_does_not_take(others_s: float, share: float) -> None:
    assert pause_s(after_scans(9.0, others_s), 0.001) == pytest.approx(0.001 / share)


def test_one_scan_tells_nothing_yet() -> None:
    assert pause_s(after_scans(), 0.001) == pytest.approx(0.05)


def test_samples_are_not_told_to_be_the_rest() -> None:
    spent = after_scans(0.0)
    for _ in range(5):
        spent.note_sample(0.002)
    spent.note_scan(1.5, 7.0 + 5 * 0.002 + 0.015)
    assert spent.pause_s == pytest.approx(0.002 / 0.015)


def test_what_is_left_later_counts_at_once() -> None:
    """Looks take samples, too: there may be none in between, which would tell."""
    spent = after_scans(9.0)
    spent.note_sample(0.001)
    assert spent.pause_s == pytest.approx(0.5)
    spent.note_scan(1.5, 7.0 + 9.0 + 0.001)
    assert spent.pause_s == pytest.approx(0.05)
