"""The base of the screens of lists: the footer with messages, the filter, keys that move."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Container
from textual.message import Message
from textual.widgets import Input
from textual.worker import Worker

from locktop.collector.errors import LocktopError, reason_of
from locktop.collector.export.files import NotWrittenError
from locktop.tui.views.shorten import path_in
from locktop.tui.views.styled_line import Line, make_line
from locktop.tui.widgets.closing_screen import ClosingScreen
from locktop.tui.widgets.filter import Filter
from locktop.tui.widgets.fixed_lines import FixedLines
from locktop.tui.widgets.footer import Footer
from locktop.tui.widgets.item_list import ItemList
from locktop.tui.widgets.scroll_panel import ScrollPanel
from locktop.tui.widgets.view_bar import ViewBar

#: How long an error, and the path of a new file, stay in the last line.
_ERROR_S, _SAVED_S = 15.0, 15.0


class Travel(Protocol):
    """Shows moments of the past."""

    @property
    def is_active(self) -> bool:
        """Whether the screen shows a moment of the past."""

    def step(self, count: int) -> None:
        """Go that many snapshots forth, or back if negative."""

    def jump(self, direction: int) -> None:
        """Go to the next alert or mark, or with a negative ``direction`` to the one before."""

    def to_oldest(self) -> None:
        """Go to the oldest moment."""

    def to_newest(self) -> None:
        """Go to now; in a replay to the last moment."""


class ListScreen(ClosingScreen[None]):
    """A screen with a list, a filter and a footer."""

    class Fault(Message):
        """Work of the screen failed by a fault of locktop; the app goes on."""

        def __init__(self, error: Exception) -> None:
            super().__init__()
            self.error = error

    #: The view that the screen shows, for the first line; "": the screen is in no row of views.
    view_name = ""
    #: The state of the screen, for the right end of the first line.
    flags_of: Callable[[], Line] = staticmethod(tuple)

    def __init__(self, travel: Travel | None = None) -> None:
        """``travel``: what the keys of the past move; None: these keys do nothing."""
        super().__init__()
        self._travel = travel
        # Made here: the screen may close before Textual has mounted its widgets.
        self.first_line = FixedLines(id="status")
        self.headline_lines = FixedLines(id="headline")
        self.footer = Footer()
        self.filter = Filter(self.active_list, self._set_filter_words)
        self.filter_words = ""  # the words of the filter

    def compose_top(self) -> ComposeResult:
        """The lines at the top: the views, the status and the headline."""
        if self.view_name:
            yield ViewBar(self.view_name)
        yield self.first_line
        yield self.headline_lines

    def show_flags(self) -> None:
        """Show the state of the screen at the right end of the first line."""
        if self.view_name and self.is_mounted:
            for bar in self.query(ViewBar):  # none, if the screen closed before its first layout
                bar.set_state(self.view_name, self.flags_of())

    def compose_footer(self) -> ComposeResult:
        """The footer, and the filter in its place."""
        with Container(id="footer"):
            yield self.footer
            yield self.filter

    def active_list(self) -> ItemList:
        """The list that the filter is for."""
        raise NotImplementedError

    def focused_panel(self) -> ScrollPanel:
        """The panel that the keys move."""
        return self.active_list()

    def apply_filter(self) -> None:
        """Show the list for the new words of the filter."""
        raise NotImplementedError

    def show_message(self, *texts: str, style: str = "text", seconds: float = 6.0) -> None:
        """Show a message until the next key, each text on a line of its own.

        A message stays for that many ``seconds`` at most. One with the style ``stuck`` stays that
        long in any case, for it tells of an error.
        """
        lines = tuple(make_line((f" {text}", style)) for text in texts)
        self.footer.show_message(lines, seconds, outlasts_keys=style == "stuck")

    def show_error(self, error: Exception, prefix: str = "", suffix: str = "") -> None:
        """Show an error as one message. The app keeps the traceback of a fault of locktop."""
        text = str(error)
        if isinstance(error, OSError) and not isinstance(error, LocktopError):
            text = reason_of(error)
        elif not isinstance(error, (LocktopError, NotWrittenError)):
            self.post_message(self.Fault(error))
            text = f"fault: {type(error).__name__}: {text}; its traceback is printed at the end"
        self.show_message(f"{prefix}{text}{suffix}", style="stuck", seconds=_ERROR_S)

    def start(self, work: Callable[[], Coroutine[Any, Any, None]], group: str) -> None:
        """Run ``work`` beside the keys, in place of earlier work of the group.

        An exception ends the work alone and becomes a message. Work that another work replaces
        before its begin never runs.
        """

        async def guarded() -> None:
            try:
                await work()
            except Exception as error:
                self.show_error(error)

        _: Worker[None] = self.run_worker(guarded, group=group, exclusive=True)

    def save(self, write: Callable[[], Path]) -> None:
        """Show where ``write``, which runs in another thread, has put a file, or why it did not."""
        self.start(partial(self._save, write), "save")

    async def _save(self, write: Callable[[], Path]) -> None:
        try:
            path = await asyncio.to_thread(write)
        except Exception as error:
            self.show_error(error, prefix="Not saved: ")
            return
        begin = "Saved "
        text = begin + path_in(path, self.size.width - len(begin) - 1)
        self.show_message(text, seconds=_SAVED_S)

    @on(Input.Changed, "#filter")
    def _filter_typed(self, event: Input.Changed) -> None:
        self._set_filter_words(event.value)

    def _set_filter_words(self, words: str) -> None:
        if words.strip() != self.filter_words:
            self.filter_words = words.strip()
            self.apply_filter()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Close an entry that was left by Tab or by the mouse: its keys would have no effect."""
        for entry in self.query(Filter):
            entry.close_if_left()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """In the filter the key of the filter is a letter."""
        return action != "filter" or not self.filter.is_open

    def action_filter(self) -> None:
        """Open the filter."""
        self.filter.open()

    def action_back(self) -> None:
        """Close the filter, clear it, or leave the screen."""
        if self.has_class("filtering"):
            self.filter.value = ""
            self.filter.close()
        elif not self.leave_part():
            if self.filter_words:
                self.filter.value = ""
            else:
                self.leave()

    def leave_part(self) -> bool:
        """Leave a part of the screen, if it is in use; return whether it was."""
        return False

    def leave(self) -> None:
        """Leave the screen."""
        self.dismiss()

    def action_move(self, rows: int) -> None:
        """Go up or down."""
        self.focused_panel().move(rows)

    def action_page(self, pages: int) -> None:
        """Go a page up or down."""
        panel = self.focused_panel()
        panel.move(pages * max(1, panel.page - 1))

    def action_start(self) -> None:
        """Go to the first line."""
        self.focused_panel().to_start()

    def action_end(self) -> None:
        """Go to the last line."""
        self.focused_panel().to_end()

    def action_step(self, count: int) -> None:
        """Go one snapshot back or forth."""
        if self._travel is not None:
            self._travel.step(count)

    def action_jump(self, direction: int) -> None:
        """Go to the alert or mark before, or to the next."""
        if self._travel is not None:
            self._travel.jump(direction)

    def action_oldest(self) -> None:
        """Go to the first line; in the past to the oldest moment."""
        if self._travel is not None and self._travel.is_active:
            self._travel.to_oldest()
        else:
            self.action_start()

    def action_newest(self) -> None:
        """Go to the last line; in the past to now, in a replay to the last moment."""
        if self._travel is not None and self._travel.is_active:
            self._travel.to_newest()
        else:
            self.action_end()
