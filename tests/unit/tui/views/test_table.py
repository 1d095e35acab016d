"""Columns in little room: what the user chose is on the screen, with the lines of locations."""

from __future__ import annotations

import pytest
from unit.builders import scenarios

from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.views import blocking, lock_list, thread_list
from locktop.tui.views.styled_line import line_text
from locktop.tui.views.table import chosen, lay_out

INDEX = SnapshotIndex(scenarios.normal())
CHOSEN = ("THREAD", "STATE", "WAITS FOR", "SINCE", "HELD BY", "WAIT%", "AT")


@pytest.mark.parametrize("width", [72, 80, 100])
def test_a_chosen_column_of_locations_keeps_the_line_number(width: int) -> None:
    table = lay_out(chosen(thread_list.columns(INDEX, lambda _: False), CHOSEN), width)
    assert table.has("AT")
    waiting = [thread for thread in INDEX.waiting if INDEX.wait_frame(thread) is not None]
    assert waiting
    for thread in waiting:
        frame = INDEX.wait_frame(thread)
        row = line_text(table.line(thread))
        assert len(row) <= width
        assert frame is not None
        assert row.rstrip().endswith(f":{frame.line}"), row


def test_no_list_is_wider_than_the_terminal() -> None:
    for columns in (lock_list.columns(INDEX), blocking.columns(INDEX)):
        for width in (80, 90, 100, 140, 160, 200):
            table = lay_out(columns, width)
            assert sum(table.widths) + len(table.widths) + 1 <= width
