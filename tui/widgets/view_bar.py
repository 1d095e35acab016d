"""The first line: the views with their keys, and the view in use.

A screen that no view leads to has none.
"""

from __future__ import annotations

from collections.abc import Callable

from rich.cells import cell_len
from textual import events

from locktop.tui.monitor_views import VIEWS, MonitorView
from locktop.tui.views.styled_line import Line, Span, cut, line_text, make_line
from locktop.tui.widgets.fixed_lines import FixedLines


class ViewBar(FixedLines):
    """Shows the views; the screen says which is in use."""

    def __init__(self, current: str) -> None:
        super().__init__(id="views")
        self._current = current

    def set_view(self, current: str) -> None:
        """Show that the view ``current`` is in use."""
        if current != self._current:
            self._current = current
            self._draw()

    def on_resize(self, _: events.Resize) -> None:
        """Choose names that fit."""
        self._draw()

    def _draw(self) -> None:
        self.show((view_bar(self._current, self.size.width or 80),))


def view_bar(current: str, width: int) -> Line:
    """The line in ``width`` cells, with the longest names that fit.

    Args:
        current: the name of the view in use.
        width: cells.
    """
    wordings: tuple[Callable[[MonitorView], str], ...] = (
        lambda view: f"{view.digit} {view.title}",
        lambda view: f"{view.digit} {view.short}",
        lambda view: f"{view.digit} {view.short}" if view.name == current else view.digit,
    )
    lines = [_names(current, words) for words in wordings]
    line = next((line for line in lines if cell_len(line_text(line)) <= width), lines[-1])
    return cut(line, width)


def _names(current: str, words: Callable[[MonitorView], str]) -> Line:
    """The names with a cell between them. Brackets take these cells at the view in use."""
    spans: list[Span | str] = []
    before = False
    for view in VIEWS:
        is_current = view.name == current
        spans.append(
            ("[" if is_current else "]" if before else " ", "title" if is_current else "key")
        )
        spans.append((words(view), "title" if is_current else "label"))
        before = is_current
    return make_line(*spans, ("]" if before else " ", "label"))
