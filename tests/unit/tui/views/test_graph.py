"""Graphs over time: their rows, their maximum, their axis, and their columns."""

from __future__ import annotations

import random
from statistics import fmean

from rich.cells import cell_len

from locktop.tui.terminal.ascii_only import to_ascii
from locktop.tui.views.cells import count
from locktop.tui.views.graph import (
    TimeGraph,
    axis_line,
    beside,
    column_count,
    column_values,
    graph_lines,
)
from locktop.tui.views.styled_line import line_text

SECOND = 1_000_000_000
MINUTE = 60 * SECOND


def drawn(values: list[float | None], height: int = 3) -> list[str]:
    lines = graph_lines(TimeGraph("Waits", values, values[-1], count), len(values) + 8, height)
    return [line_text(line).rstrip() for line in lines]


def test_the_tallest_column_has_the_whole_height_and_its_value_beside_it() -> None:
    assert drawn([None, 0.0, 1.0, 8.0, 16.0, 4.0]) == [
        " Waits 4",
        "     █  16",
        " · ▁██▄",
    ]


def test_a_graph_without_a_wait_is_empty_and_its_maximum_is_0() -> None:
    assert drawn([0.0, 0.0, 0.0]) == [" Waits 0", "     0", ""]


def test_a_graph_without_a_figure_says_so() -> None:
    assert drawn([None, None, None, None, None, None]) == [" Waits: not m…", "", " ······"]


def test_the_rows_of_random_graphs_have_one_width_also_in_ascii() -> None:
    chance = random.Random(1)
    for _ in range(200):
        width, height = chance.randint(9, 100), chance.randint(2, 12)
        values = [
            chance.choice((None, 0.0, chance.random() * 1e6)) for _ in range(column_count(width))
        ]
        lines = graph_lines(TimeGraph("Longest wait", values, values[-1], count), width, height)
        assert len(lines) == height
        texts = [line_text(line) for line in lines]
        assert max(map(cell_len, texts)) <= width
        plain = [to_ascii(text) for text in texts]
        assert all(text.isascii() for text in plain)
        assert list(map(len, plain)) == list(map(cell_len, texts))
        highest = max((value for value in values if value is not None), default=0.0)
        for number, value in enumerate(values):
            column = [text[1 + number] for text in texts[1:]]
            assert (set(column) <= {" ", "·"}) == (not value)
            if value == highest and value:
                assert set(column) == {"█"}


def test_the_axis_has_the_minutes_and_the_alerts_over_its_labels() -> None:
    def axis(*alerts_s: int) -> str:
        until_ns = 1000 * 2 * MINUTE
        alerts = [until_ns - second * SECOND for second in alerts_s]
        return line_text(axis_line(48, 2 * MINUTE, until_ns, alerts))

    assert axis() == " -2 min " + " " * 13 + "-1 min " + " " * 13 + " now"
    assert axis(0, 30) == " -2 min " + " " * 13 + "-1 min " + " " * 2 + "▲" + " " * 9 + "▲ now"
    assert axis(54) == axis()[:21] + " ▲" + " " * 18 + " now"  # the label makes room
    assert axis(500) == axis()


def test_columns_keep_their_samples_while_they_move_to_the_left() -> None:
    chance = random.Random(2)
    for _ in range(100):
        samples = []
        time_ns = chance.randrange(10 * MINUTE)
        for _ in range(300):
            time_ns += chance.randrange(SECOND // 10, 2 * SECOND)
            samples.append((time_ns, chance.random()))
        columns = chance.randint(5, 60)
        until_ns = samples[-1][0]
        whole = column_values(samples, until_ns, 2 * MINUTE, columns)
        length_ns = 2 * MINUTE // columns
        earlier = column_values(samples, until_ns - 3 * length_ns, 2 * MINUTE, columns)
        assert earlier[3:-1] == whole[:-4]


def test_a_column_combines_its_samples_and_a_gap_is_not_measured() -> None:
    until_ns = 100 * MINUTE
    samples = [
        (until_ns - 110 * SECOND, 1.0),
        (until_ns - 40 * SECOND, 2.0),  # long after the sample before
        (until_ns - 20 * SECOND - 1, 9.0),
        (until_ns - 10 * SECOND, 5.0),
        (until_ns - 9 * SECOND, 3.0),
        (until_ns + 1, 99.0),
    ]
    assert column_values(samples, until_ns, 2 * MINUTE, 12) == [
        1.0, None, None, None, None, None, 2.0, 2.0, 9.0, 5.0, 5.0, None,
    ]  # fmt: skip
    assert column_values(samples, until_ns, 2 * MINUTE, 12, fmean)[10] == 4.0
    assert column_values([(until_ns, None)], until_ns, 2 * MINUTE, 12) == [None] * 12


def test_two_graphs_stand_side_by_side() -> None:
    graph = TimeGraph("A", [1.0, 2.0], 2.0, count)
    lines = beside(graph_lines(graph, 10, 2), graph_lines(graph, 10, 2), 12)
    assert [line_text(line)[12:] for line in lines] == [" A 2", " ▄█ 2"]
