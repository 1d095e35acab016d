"""The characters of a time line."""

from __future__ import annotations

import pytest
from unit.builders.time_lines import BEGIN_NS, MS, at

from locktop.collector.model import LaneState, Window
from locktop.collector.render.words import timeline

WAITS, HOLDS, RUNS = LaneState.WAITING, LaneState.HOLDING, LaneState.RUNNING


def test_the_height_of_a_block_is_the_share_of_the_wait() -> None:
    signs = [timeline.glyph({(WAITS, 1): ns, (RUNS, 0): 800 - ns}, 800)[0] for ns in range(1, 801)]
    assert signs[0] == "▁"
    assert signs[-1] == "█"
    assert signs[-2] == "▇"
    assert signs == sorted(signs)
    assert set(signs) == set(timeline.BLOCKS)


def test_any_wait_decides_its_cell() -> None:
    cell = {(HOLDS, 1): 10**9, (WAITS, 2): 1}
    assert timeline.glyph(cell, 10**9 + 1) == ("▁", WAITS)


def test_a_hold_goes_before_the_rest() -> None:
    assert timeline.glyph({(HOLDS, 1): 50, (RUNS, 0): 50}, 100) == ("═", HOLDS)
    assert timeline.glyph({(HOLDS, 1): 1, (RUNS, 0): 99}, 100) == ("~", HOLDS)
    assert timeline.glyph({(RUNS, 0): 60, (LaneState.SLEEPING, 0): 40}, 100) == ("─", RUNS)
    assert timeline.glyph({}, 0) == (" ", LaneState.UNKNOWN)


def test_the_forms_of_all_states_differ() -> None:
    signs = [timeline.glyph({(state, 1): 100}, 100)[0] for state in LaneState]
    assert len(set(signs)) == len(LaneState)


def test_a_letter_names_the_lock_of_the_longest_wait() -> None:
    letters = timeline.letters_of([7, 8])
    assert timeline.lock_letter({(WAITS, 7): 10, (WAITS, 8): 30}, 100, letters)[0] == "b"
    assert timeline.lock_letter({(WAITS, 7): 30, (WAITS, 8): 20}, 100, letters)[0] == "A"
    assert timeline.lock_letter({(WAITS, 99): 30}, 100, letters)[0] == timeline.OTHER_LOCK
    assert timeline.lock_letter({(HOLDS, 7): 100}, 100, letters)[0] == "═"


def test_the_letters_end_with_the_alphabet() -> None:
    assert len(timeline.letters_of(range(100))) == 26


def test_a_density_is_never_blank_for_a_wait() -> None:
    assert timeline.shade(0) == " "
    assert timeline.shade(1e-12) == "·"
    assert timeline.shade(1) == "█"
    signs = [timeline.shade(part / 100) for part in range(101)]
    assert list(dict.fromkeys(signs)) == list(timeline.SHADES)


@pytest.mark.parametrize(
    ("cell_ns", "digits"), [(2 * 10**9, 0), (10**9, 0), (10**8, 3), (10**6, 3), (999, 9)]
)
def test_digits_tell_cells_apart(cell_ns: int, digits: int) -> None:
    assert timeline.digits_for(cell_ns) == digits


@pytest.mark.parametrize("span_ms", [0.001, 0.1, 5, 700, 30_000, 900_000, 90_000_000])
def test_the_axis_has_a_mark_at_the_cell_of_each_of_its_times(span_ms: float) -> None:
    window = Window(at(0), at(span_ms), 60)
    text = timeline.axis(window)
    assert len(text) == 60
    assert 1 <= text.count("│") <= 60 / 12


def test_a_time_of_day_has_as_many_digits_as_wanted() -> None:
    assert timeline.time_of_day(BEGIN_NS + 120 * MS, 0)[3:] == "12:45"
    assert timeline.time_of_day(BEGIN_NS + 120 * MS)[3:] == "12:45.120"
    assert timeline.time_of_day(BEGIN_NS + 7, 9)[3:] == "12:45.000000007"
