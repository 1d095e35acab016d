"""The texts that the user copies from the monitor, and the line of the source."""

from __future__ import annotations

from collections.abc import Callable

from locktop.collector.export.formats import SNAPSHOT_FORMATS
from locktop.collector.format.snapshot_index import SnapshotIndex
from locktop.collector.model import Snapshot
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
        with_whatif: Callable[[Snapshot], Snapshot],
    ) -> None:
        """Args:
        screen: the monitor.
        body: has the lists.
        index: returns the snapshot on the screen.
        with_whatif: adds the newest predictions to a snapshot.
        """
        super().__init__(screen, screen.active_list)
        self._body = body
        self._index = index
        self._with_whatif = with_whatif

    def row(self) -> str:
        """See ListTexts."""
        index = self._index()
        return self._body.panel().row_text(index) if index is not None else ""

    def report(self) -> Callable[[], str] | None:
        """See ListTexts."""
        index = self._index()
        if index is None:
            return None
        snapshot = self._with_whatif(index.snapshot)
        return lambda: SNAPSHOT_FORMATS.render("text", snapshot).decode()

    def source_line(self) -> tuple[str, int] | None:
        """See ListTexts."""
        index = self._index()
        return self._body.target.source_line(index) if index is not None else None
