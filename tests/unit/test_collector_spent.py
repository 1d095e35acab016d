"""How often a process is sampled: as often as looks leave time for it."""

from __future__ import annotations

import pytest

from locktop.collector.spent import SHORTEST_S, Spent


def after_looks(*took_s: float) -> Spent:
    """Looks each half a second."""
    spent = Spent()
    for number, one in enumerate(took_s, 1):
        spent.note_look(number / 2, one)
    return spent


def test_without_looks_samples_take_two_percent() -> None:
    assert Spent().pause_s(0.001) == pytest.approx(0.05)


def test_neither_too_often_nor_too_seldom() -> None:
    assert Spent().pause_s(0.0) == SHORTEST_S
    assert Spent().pause_s(10.0) == 2.0


@pytest.mark.parametrize(
    ("took_s", "share"), [(0.0, 0.02), (0.01, 0.02), (0.015, 0.015), (0.02, 0.005), (9.0, 0.002)]
)
def test_looks_leave_what_they_do_not_take(took_s: float, share: float) -> None:
    assert after_looks(9.0, took_s).pause_s(0.001) == pytest.approx(0.001 / share)


def test_the_first_look_may_take_long() -> None:
    assert after_looks(9.0).pause_s(0.001) == pytest.approx(0.05)


def test_a_look_is_measured() -> None:
    spent = Spent()
    for _ in range(2):
        with spent.on_a_look():
            sum(range(100_000))
    assert 0.001 / 0.02 <= spent.pause_s(0.001) <= 0.001 / 0.002
