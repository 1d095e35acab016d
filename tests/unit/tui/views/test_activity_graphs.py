"""The graphs of the overview in terminals of all sizes."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from locktop.collector.recording.past_activity import ActivityPoint
from locktop.tui.views.activity_graphs import activity_graphs
from locktop.tui.views.styled_line import line_text

NS = 1_000_000_000
UNTIL = 1_790_000_000 * NS
TITLES = (
    "Waiting threads 11", "Longest wait 34.8s", "Waits ended a second 1.23k", "CPUs in use 1.50"
)  # fmt: skip


def texts(size: tuple[int, int], waits: float | None = 1234.0) -> list[str]:
    points = [
        ActivityPoint(UNTIL - second * NS // 2, 7, 11, waits, 1.5, 34.8)
        for second in range(200, -1, -1)
    ]
    return [line_text(line) for line in activity_graphs(points, UNTIL, [UNTIL - 9 * NS], size)]


@pytest.mark.parametrize("size", [(39, 19), (79, 19), (119, 35), (199, 55), (20, 5)], ids=str)
def test_four_graphs_and_the_alert_fit(size: tuple[int, int]) -> None:
    lines = texts(size)
    assert max(map(cell_len, lines)) <= size[0]
    assert len(lines) <= max(size[1] // 2 + 1, 9)
    text = "\n".join(lines)
    if size[0] > 30:
        assert all(title in text for title in TITLES), text
    assert lines[-1].count("▲") == (2 if size[0] >= 60 else 1)


def test_a_figure_that_is_not_measured_says_so_and_the_others_stay() -> None:
    text = "\n".join(texts((79, 19), waits=None))
    assert "Waits ended a second: not measured" in text
    assert "CPUs in use 1.50" in text


def test_nothing_is_known_at_first() -> None:
    text = "\n".join(map(line_text, activity_graphs([], UNTIL, [], (79, 19))))
    assert text.count(": not measured") == 4
