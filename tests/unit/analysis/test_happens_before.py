"""The order of threads by creations and joins, against a plain search, and its limit."""

from __future__ import annotations

import random

import pytest

from locktop.collector.analysis import happens_before
from locktop.collector.analysis.happens_before import HappensBefore, ThreadLife

Point = tuple[int, int]


def created(creator: int, segment: int, joiner: int = 0, joined_in: int = 0) -> ThreadLife:
    return ThreadLife(0, creator, segment, joiner, joined_in)


def comes_before(lives: dict[int, ThreadLife], one: Point, other: Point) -> bool:
    """Return whether ``other`` can be reached from ``one``, by a search of single steps."""
    seen: set[Point] = set()
    work = [one]
    while work:
        point = work.pop()
        if point in seen:
            continue
        seen.add(point)
        serial, segment = point
        if serial == other[0] and segment <= other[1]:
            return True
        for child, life in lives.items():
            if life.creator == serial and life.created_in >= segment:
                work.append((child, 0))
        life_of = lives.get(serial)
        if life_of is not None and life_of.joiner:
            work.append((life_of.joiner, life_of.joined_in))
    return False


def test_the_order_is_that_of_a_plain_search() -> None:
    chance = random.Random(18)
    concurrent = 0
    for _ in range(100):
        lives = {
            serial: created(chance.randint(1, serial - 1), chance.randint(0, 4))
            if chance.random() < 0.5
            else created(
                chance.randint(1, serial - 1), chance.randint(0, 4),
                chance.randint(1, serial - 1), chance.randint(0, 4),
            )
            for serial in range(2, 9)
        }  # fmt: skip
        order = HappensBefore(lives)
        points = [(chance.randint(1, 8), chance.randint(0, 5)) for _ in range(12)]
        for one in points:
            for other in points:
                before = comes_before(lives, one, other) or comes_before(lives, other, one)
                assert order.are_concurrent(one, other) is not before
                concurrent += not before
        assert not order.is_exhausted
    assert concurrent > 1000


def test_a_creation_and_a_join_are_borders() -> None:
    order = HappensBefore({2: created(1, 3, 1, 7)})
    assert [order.are_concurrent((1, n), (2, 0)) for n in range(2, 9)] == [
        False, False, True, True, True, False, False,
    ]  # fmt: skip
    assert not order.are_concurrent((1, 2), (1, 5)), "one thread"


def test_at_its_limit_no_points_are_called_concurrent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(happens_before, "MAX_STEPS", 150)
    order = HappensBefore({serial: created(1, 0) for serial in range(2, 60)})
    assert order.are_concurrent((2, 0), (3, 0))
    assert not order.are_concurrent((1, 0), (3, 0)), "a creation"
    assert not order.is_exhausted
    for segment in range(60):
        order.are_concurrent((4, segment), (5, 0))
    assert order.is_exhausted
    assert not order.are_concurrent((6, 0), (7, 0)), "not known"


def test_the_points_of_a_thread_with_many_children_are_compared_in_bounded_steps() -> None:
    lives = {serial: created(1, serial, 1, serial + 1) for serial in range(2, 20_000)}
    order = HappensBefore(lives)
    for segment in range(0, 20_000, 10):
        order.are_concurrent((1, segment), (2, 0))
    assert order.is_exhausted


@pytest.mark.parametrize(("steps", "concurrent"), [(1, False), (2, False), (3, True)])
def test_points_that_the_steps_do_not_suffice_to_compare_count_as_ordered(
    monkeypatch: pytest.MonkeyPatch, steps: int, concurrent: bool
) -> None:
    monkeypatch.setattr(happens_before, "MAX_STEPS", steps)
    found = HappensBefore({})
    assert found.are_concurrent((1, 0), (2, 0)) is concurrent
    assert found.is_exhausted is not concurrent
