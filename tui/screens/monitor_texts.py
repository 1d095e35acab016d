"""The texts that the user copies from the monitor, and the line of the source."""

from __future__ import annotations

from collections.abc import Callable

from locktop.collector.model import Snapshot
from locktop.collector.render.formats import SNAPSHOT_FORMATS
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.screens.monitor_body import MonitorBody
from locktop.tui.widgets.list_screen import ListScreen
from locktop.tui.widgets.list_texts import ListTexts


class MonitorTexts(ListTexts):
    """The texts of the snapshot on the screen."""

    def __init__(
        self,
        screen: ListScreen,
        body: MonitorBody,
        index: Callable[[], SnapshotIndex | None],
        annotate: Callable[[Snapshot], Snapshot],
    ) -> None:
        """Args:
        screen: the monitor.
        body: has the lists.
        index: returns the snapshot on the screen.
        annotate: adds to a snapshot what extensions know.
        """
        super().__init__(screen, screen.active_list)
        self._body = body
        self._index = index
        self._annotate = annotate

    def row(self) -> str:
        index = self._index()
        return self._body.panel().row_text(index) if index is not None else ""

    def report(self) -> Callable[[], str] | None:
        index = self._index()
        if index is None:
            return None
        snapshot = self._annotate(index.snapshot)
        return lambda: SNAPSHOT_FORMATS.render("text", snapshot).decode()

    def source_line(self) -> tuple[str, int] | None:
        index = self._index()
        return self._body.target.source_line(index) if index is not None else None
