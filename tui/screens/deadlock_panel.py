"""The list of deadlocks: which rows, and what the details of a row are about."""

from __future__ import annotations

from collections.abc import Sequence

from locktop.collector.model import DeadlockReport, Lock
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.screens.details_subject import DetailsSubject, Topic
from locktop.tui.typed_filter import TypedFilter
from locktop.tui.views.deadlock_list import HEADING, POTENTIAL, deadlock_rows
from locktop.tui.views.styled_line import line_text
from locktop.tui.widgets.item_list import ItemList


class DeadlockPanel:
    """The certain deadlocks, the possible ones, then the potential ones."""

    def __init__(self, widget: ItemList) -> None:
        self.widget = widget

    @property
    def subject(self) -> DetailsSubject | None:
        """The subject of the row under the cursor, for the details."""
        row = self.widget.current
        if not row:
            return None
        if row > POTENTIAL:
            return DetailsSubject(Topic.LOCK_ORDERS, row - POTENTIAL)
        return DetailsSubject(Topic.DEADLOCKS, row)

    def draw(self, index: SnapshotIndex, typed: TypedFilter, show_idle: bool, now: float) -> None:
        """Update the widget; see Panel. The list has one order, and no idle rows."""
        if not self.widget.display:
            return
        rows = deadlock_rows(index)
        wanted = typed.filter
        ids = [id_ for id_, row in rows.items() if not wanted or wanted.finds_words(line_text(row))]
        caption = f"with “{wanted.text}”" if wanted else "certain, possible, potential"
        self.widget.set_heads("Deadlocks", caption, HEADING)
        self.widget.show(ids, rows.__getitem__)

    def row_text(self, index: SnapshotIndex) -> str:
        return self.widget.current_text

    def sort_now(self) -> None:
        """The list has one order."""

    def next_sort_key(self) -> None:
        """The list has one order."""

    def reverse(self) -> None:
        """The list has one order."""

    def set_open(self, index: SnapshotIndex, is_open: bool) -> None:
        """The list has no groups."""

    def has_column(self, title: str) -> bool:
        """The list has no such column."""
        return False

    def lock(self, index: SnapshotIndex) -> Lock | None:
        """The lock that the first thread of the deadlock waits for."""
        row = self.widget.current or 0
        deadlocks = index.deadlocks[row - 1 : row] if row else ()
        return index.locks.get(deadlocks[0].cycle[0].waits_for) if deadlocks else None


def reports_of(index: SnapshotIndex, row: int) -> Sequence[DeadlockReport]:
    """Return the report of the deadlock with that number from 1; of all with 0."""
    reports = index.deadlock_reports
    return reports[row - 1 : row] if row else reports
