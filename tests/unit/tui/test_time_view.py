"""The visible span of time and its cursor."""

from __future__ import annotations

import random

from support.seeds import seeds

from locktop.tui.time_view import MIN_SPAN_NS, TimeView

S = 10**9


def test_the_newest_part_is_visible_first() -> None:
    view = TimeView.create(0, 100 * S)
    assert (view.from_ns, view.to_ns, view.at_ns, view.follows) == (40 * S, 100 * S, 100 * S, True)
    short = TimeView.create(90 * S, 100 * S)
    assert (short.from_ns, short.to_ns) == (90 * S, 100 * S)


def test_a_given_moment_is_in_the_middle() -> None:
    view = TimeView.create(0, 100 * S, 35 * S)
    assert (view.from_ns, view.to_ns, view.at_ns) == (5 * S, 65 * S, 35 * S)
    assert not view.follows


def test_the_view_follows_the_newest_moment_until_the_cursor_moves() -> None:
    view = TimeView.create(0, 100 * S)
    view.set_bounds(0, 102 * S)
    assert (view.from_ns, view.to_ns, view.at_ns) == (42 * S, 102 * S, 102 * S)
    view.move(-1, 30)
    view.set_bounds(0, 105 * S)
    assert (view.from_ns, view.to_ns) == (42 * S, 102 * S)
    view.to_edge(1)
    view.set_bounds(0, 106 * S)
    assert (view.to_ns, view.at_ns) == (106 * S, 106 * S)


def test_a_view_of_all_that_is_kept_grows_to_its_first_span() -> None:
    view = TimeView.create(0, S)
    view.set_bounds(0, 3 * S)
    assert (view.from_ns, view.to_ns, view.at_ns) == (0, 3 * S, 3 * S)
    view.set_bounds(0, 70 * S)
    assert (view.from_ns, view.to_ns) == (10 * S, 70 * S)
    view.zoom(1)
    view.set_bounds(0, 72 * S)
    assert (view.from_ns, view.to_ns) == (42 * S, 72 * S)


def test_what_is_forgotten_leaves_the_view() -> None:
    view = TimeView.create(0, 100 * S, 10 * S)
    view.set_bounds(50 * S, 120 * S)
    assert view.from_ns == 50 * S
    assert view.at_ns >= view.from_ns


def test_a_zoom_keeps_the_cursor_in_its_cell() -> None:
    view = TimeView.create(0, 100 * S, 20 * S)
    for _ in range(20):
        cell = view.window(50).cell_at(view.at_ns)
        view.zoom(1)
        assert abs(view.window(50).cell_at(view.at_ns) - cell) <= 1
    assert view.span_ns >= MIN_SPAN_NS


def test_the_least_and_the_whole_span_bound_a_zoom() -> None:
    view = TimeView.create(0, 100 * S, 20 * S)
    view.zoom(60)
    assert view.span_ns == MIN_SPAN_NS
    view.zoom(-60)
    assert (view.from_ns, view.to_ns) == (0, 100 * S)
    view.zoom(1)
    view.whole()
    assert view.span_ns == 100 * S


def test_the_cursor_takes_the_view_along() -> None:
    view = TimeView.create(0, 100 * S, 50 * S)
    for _ in range(200):
        view.move(1, 30)
        assert view.from_ns <= view.at_ns <= view.to_ns
    assert view.at_ns == 100 * S
    view.to_edge(-1)
    assert (view.at_ns, view.from_ns) == (0, 0)


def take_step(view: TimeView, chosen: random.Random) -> None:
    """Do what one random key would do."""
    chosen.choice(
        (
            lambda: view.move(chosen.randint(-9, 9), 58),
            lambda: view.zoom(chosen.choice((-3, -1, 1, 5))),
            lambda: view.pan(chosen.choice((-1, 1))),
            lambda: view.go_to(chosen.randint(-S, 200 * S)),
            lambda: view.to_edge(chosen.choice((-1, 1))),
            view.whole,
            lambda: view.set_bounds(
                view.first_ns + S // 50, view.last_ns + chosen.randint(S // 50, S)
            ),
        )
    )()


def test_the_view_never_leaves_what_is_kept() -> None:
    for seed in seeds(20):
        chosen = random.Random(seed)
        first, last = chosen.randint(0, 10**6), 10**6 + chosen.randint(1, 100 * S)
        view = TimeView.create(first, last)
        for _ in range(200):
            take_step(view, chosen)
            assert view.first_ns <= view.from_ns < view.to_ns <= view.last_ns
            assert view.from_ns <= view.at_ns <= view.to_ns
