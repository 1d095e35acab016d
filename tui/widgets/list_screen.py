"""The base of the screens of lists: the footer with messages, the filter, keys that move."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.message import Message
from textual.widgets import Input
from textual.worker import Worker

from locktop.collector.errors import LocktopError, reason_of
from locktop.collector.model import Snapshot
from locktop.collector.render.files import NotWrittenError
from locktop.tui.action_types import ScreenActions
from locktop.tui.bindings import ENTRIES, bindings, footer_line, keys_of
from locktop.tui.terminal.editor import editor_command
from locktop.tui.views.cells import plain
from locktop.tui.views.styled_line import Line, make_line
from locktop.tui.widgets.closing_screen import ClosingScreen
from locktop.tui.widgets.copier import Copier
from locktop.tui.widgets.filter import Filter, FindEntry
from locktop.tui.widgets.fixed_lines import FixedLines
from locktop.tui.widgets.footer import Footer
from locktop.tui.widgets.help import HelpScreen
from locktop.tui.widgets.item_list import ItemList
from locktop.tui.widgets.list_texts import ListTexts
from locktop.tui.widgets.palette import Palette
from locktop.tui.widgets.scroll_panel import ScrollPanel
from locktop.tui.widgets.status_row import StatusRow
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


@runtime_checkable
class _RunsPrograms(Protocol):
    """An app that can leave the terminal to another program."""

    def run_on_terminal(self, command: Sequence[str]) -> str:
        """Run a command, and come back to the screen; return what went wrong, or ""."""


class ListScreen(ClosingScreen[None]):
    """A screen with a list, a filter and a footer."""

    class Fault(Message):
        """Work of the screen failed by a fault of locktop; the app goes on."""

        def __init__(self, error: Exception) -> None:
            super().__init__()
            self.error = error

    # These keys say on each screen what they do not do there.
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("sort", "reverse", "columns")]
    #: The actions of the screen.
    SCREEN: ClassVar[ScreenActions]
    #: The view that the screen shows, for the first line; "": the screen is in no row of views.
    view_name = ""
    #: The state of the screen, for the right end of the second line.
    flags_of: Callable[[], Line] = staticmethod(tuple)

    def __init__(self, travel: Travel | None = None) -> None:
        """``travel``: what the keys of the past move; None: these keys do nothing."""
        super().__init__()
        self._travel = travel
        # Made here: the screen may close before Textual has mounted its widgets.
        self.status_row = StatusRow()
        self.headline_lines = FixedLines(id="headline")
        self.footer = Footer()
        self.filter = Filter(self.active_list, self._set_filter_words)
        self.filter_words = ""  # the words of the filter
        self.find_entry = FindEntry(self.focused_panel, self._find_ended)
        self._found_words = ""  # the words that n and N go on with
        self.copier = Copier(self)
        self.texts = ListTexts(self, self.active_list)

    def on_mount(self) -> None:
        """Have an empty list say how to leave the filter."""
        for widget in self.query(ItemList):
            widget.about_empty = self._about_empty

    def _about_empty(self) -> str:
        if not self.filter_words:
            return ""
        key = keys_of(self.app).first_label("back")
        return f"No row here has “{self.filter_words}”; {key} leaves the filter."

    def compose_top(self) -> ComposeResult:
        """The lines at the top: the views, the status and the headline."""
        if self.view_name:
            yield ViewBar(self.view_name)
        yield self.status_row
        yield self.headline_lines

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Show a newer snapshot, above the monitor. A screen of one moment leaves it alone."""

    def show_flags(self) -> None:
        """Show the state of the screen at the right end of the second line."""
        if self.is_mounted:
            self.status_row.set_flags(self.flags_of())

    def compose_footer(self) -> ComposeResult:
        """The footer, and the filter in its place."""
        with Container(id="footer"):
            yield self.footer
            yield from self.compose_entries()

    def compose_entries(self) -> ComposeResult:
        """The entries, which take the place of the footer while they are open."""
        yield self.filter
        yield self.find_entry

    def active_list(self) -> ItemList:
        """The list that the filter is for."""
        raise NotImplementedError

    def focused_panel(self) -> ScrollPanel:
        """The panel that the keys move."""
        return self.active_list()

    def apply_filter(self) -> None:
        """Show the list for the new words of the filter."""
        raise NotImplementedError

    def show_keys(
        self, actions: Sequence[str] | None = None, labels: Mapping[str, str] | None = None
    ) -> None:
        """Show the line of keys: of ``actions``, None for the usual ones of the screen.

        An action in ``labels`` has that label in place of its usual one.
        """
        chosen = self.SCREEN.footer if actions is None else actions
        self.footer.set_keys(footer_line(self.size.width, chosen, keys_of(self.app), labels))

    def show_help(
        self, notes: Sequence[str] = (), *, only_keys: bool = False, tree_first: bool = False
    ) -> None:
        """Show the help with notes.

        Args:
            notes: see HelpScreen.
            only_keys: whether to show the keys of this screen alone.
            tree_first: see HelpScreen.
        """
        actions = self.SCREEN if only_keys else None
        self.app.push_screen(HelpScreen(notes, actions, tree_first=tree_first))

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
        # Whole, to be copied: the footer grows with it.
        self.show_message(f"Saved {plain(str(path))}", seconds=_SAVED_S)

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
        """In an entry the keys of the entries are letters."""
        is_entry = action in ENTRIES
        return not (is_entry and any(entry.is_open for entry in self.query(Filter)))

    def action_palette(self) -> None:
        """Show all actions of the screen by name, and run the chosen one."""
        table = keys_of(self.app)
        self.app.push_screen(Palette(self.SCREEN, table, self.app.size.width), self._run_chosen)

    async def _run_chosen(self, action: str | None) -> None:
        if action is not None:
            await self.run_action(action)

    def action_find(self) -> None:
        """Ask for words, and go to the next row that has them."""
        self.find_entry.open()

    @on(Input.Changed, "#find")
    def _find_typed(self, event: Input.Changed) -> None:
        self.find_entry.panel.find_from_origin(event.value.strip())

    def _find_ended(self, words: str) -> None:
        self._found_words = words.strip()
        if self._found_words and not self.find_entry.panel.find_from_origin(self._found_words):
            self._say_not_found()

    def action_find_on(self, direction: int) -> None:
        """Go on to the next row with the words found last, or back to the one before."""
        if not self._found_words:
            self.show_message("No words to find yet: f asks for them.")
        elif not self.focused_panel().find(self._found_words, direction):
            self._say_not_found()

    def _say_not_found(self) -> None:
        self.show_message(f"No row has “{self._found_words}”.")

    def action_edit(self) -> None:
        """Open the line of the source in the user's editor."""
        location = self.texts.source_line()
        fault = self._edit(*location) if location is not None else "No source line is known here."
        if fault:
            self.show_message(fault, style="waiting", seconds=_ERROR_S)

    def _edit(self, file: str, line: int) -> str:
        """Open a file in the editor; return what went wrong, or ""."""
        path = Path(file)
        where = f"{file}:{line}" if line else file
        if not path.is_absolute():
            return f"The directory of the source file is not known: {where}"
        if not path.is_file():
            return f"The source file is not on this machine: {where}"
        command = editor_command(os.environ, path, line)
        if not command:
            return "There is no editor: set VISUAL or EDITOR to one."
        app = self.app
        return app.run_on_terminal(command) if isinstance(app, _RunsPrograms) else ""

    def action_copy(self, what: str) -> None:
        """Copy the ``row`` under the cursor, the ``details`` or the text ``report``."""
        if what == "report":
            self.copier.copy("the report", self.texts.report())
            return
        text = self.texts.row() if what == "row" else self.texts.details()
        self.copier.copy(f"the {what}", (lambda: text) if text else None)

    def action_sort(self) -> None:
        """Say that the screen has one order. A screen with several orders sorts."""
        self.say_without_columns()

    def action_reverse(self) -> None:
        """See action_sort()."""
        self.say_without_columns()

    def action_choose(self, what: str) -> None:
        """Say that the screen has no columns to choose."""
        self.say_without_columns()

    def say_without_columns(self) -> None:
        """Say that what is seen has one order and no columns to choose."""
        self.show_message("There is one order here, and there are no columns to choose.")

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

    def action_half_page(self, pages: int) -> None:
        """Go half a page up or down."""
        panel = self.focused_panel()
        panel.move(pages * max(1, panel.page // 2))

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
