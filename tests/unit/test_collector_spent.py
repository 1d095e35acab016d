"""How often a process is sampled: as often as looks leave time for it."""

from __future__ import annotations

import time

import pytest

from locktop.collector.spent import SHORTEST_S, Spent


def test_without_looks_samples_take_two_percent() -> None:
    assert Spent().pause_s(0.001) == pytest.approx(0.05)


def test_neither_too_often_nor_too_seldom() -> None:
    assert Spent().pause_s(0.0) == SHORTEST_S
    assert Spent().pause_s(10.0) == 2.0


def test_looks_that_take_all_leave_the_least() -> None:
    spent = Spent()
    for _ in range(2):
        with spent.on_a_look():
            used = time.thread_time()
            while time.thread_time() < used + 0.002:
                pass
    assert 0.05 < spent.pause_s(0.001) <= pytest.approx(0.2)


def test_a_look_that_only_sleeps_takes_nothing() -> None:
    spent = Spent()
    for _ in range(2):
        with spent.on_a_look():
            time.sleep(0.01)
    assert spent.pause_s(0.001) == pytest.approx(0.05)
