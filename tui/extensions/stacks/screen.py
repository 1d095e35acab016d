"""All stacks now: the groups of threads with equal stacks, and the stack of the chosen group."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container

from locktop.collector.extensions.stacks.formats import STACKS_FORMATS
from locktop.collector.extensions.stacks.model import NAME, AllStacks, StackGroup
from locktop.collector.extensions.stacks.text_report import heading
from locktop.collector.extensions.stacks.words import StackWords
from locktop.collector.render.files import save_new
from locktop.collector.render.rendered_files import snapshot_name
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.bindings import bindings
from locktop.tui.extensions.stacks.columns import group_columns, group_details
from locktop.tui.extensions.stacks.screen_actions import SCREEN_ACTIONS
from locktop.tui.views.styled_line import cut, make_line
from locktop.tui.views.table import lay_out
from locktop.tui.widgets.details import WHOLE_SCREEN, Details
from locktop.tui.widgets.item_list import ItemList
from locktop.tui.widgets.one_list_screen import OneListScreen
from locktop.tui.widgets.scroll_panel import ScrollPanel

_RECORDED = "These are the stacks of a past scan: a reads them again on a live screen."


class StacksScreen(OneListScreen):
    """A list of groups over the stack of the one under the cursor."""

    SCREEN = SCREEN_ACTIONS
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(*SCREEN_ACTIONS.actions)]
    view_name = NAME

    def __init__(self, stacks: AllStacks, read_again: Callable[[], None] | None) -> None:
        """Make the screen.

        Args:
            stacks: the groups.
            read_again: reads the stacks anew; None: the process cannot be read.
        """
        super().__init__("stacks")
        self._read_again = read_again
        self._details = Details(id="stack")
        self._take(stacks)

    def _take(self, stacks: AllStacks) -> None:
        self._stacks = stacks
        self._words = StackWords(stacks)
        self._index = SnapshotIndex(stacks.snapshot)
        self._by_number = {group.number: group for group in stacks.groups}

    def compose_body(self) -> ComposeResult:
        """The list over the stack."""
        self._list.styles.height, self._details.styles.height = "2fr", "3fr"
        with Container():
            yield self._list
            yield self._details

    def focused_panel(self) -> ScrollPanel:
        return self._details if self.focused is self._details else self._list

    def show_stacks(self, stacks: AllStacks) -> None:
        """Show the stacks of a newer scan."""
        self._take(stacks)
        self.show_message(f"Read again at {_clock(stacks)}.")
        self.apply_filter()

    def apply_filter(self) -> None:
        width, process = self.size.width, self._stacks.snapshot.process
        self.show_keys()
        title = make_line(
            (f" {process.comm} {process.pid}", "strong"), f"  all stacks at {_clock(self._stacks)}"
        )
        self.status_row.show((cut(title, width),))
        counts = make_line((f" {heading(self._stacks, self._words)}", "label"))
        self.headline_lines.show((cut(counts, width),))
        words = self.filter_words.lower()
        visible = [group.number for group in self._stacks.groups if self._has(group, words)]
        table = lay_out(group_columns(self._words), self._list.size.width)
        self._list.set_heads("Stacks", "of all threads, equal ones in one row", table.heading())
        self._list.show(visible, lambda number: table.line(self._by_number[number]))
        self._draw_details()

    def _has(self, group: StackGroup, words: str) -> bool:
        functions = (frame.function for frame in group.frames)
        texts = (
            group.state,
            self._words.awaited(group),
            self._words.holders(group),
            self._words.threads(group),
            *(thread.name for thread in group.threads),
            *functions,
        )
        return not words or any(words in text.lower() for text in texts)

    def _draw_details(self) -> None:
        group = self._by_number.get(self._list.current or 0)
        name = f"of {self._words.name(group)}" if group is not None else ""
        self._details.set_heads("Stack", name)
        lines = group_details(self._index, self._words, group) if group is not None else ()
        self._details.show((id(self._stacks), self._list.current), lines)

    @on(ItemList.Moved)
    def _moved(self) -> None:
        self._draw_details()

    def leave_part(self) -> bool:
        """Leave the whole screen, or the stack."""
        if self.has_class(WHOLE_SCREEN):
            self.action_zoom()
        elif self.focused is self._details:
            self.action_panel(-1)
        else:
            return False
        return True

    # Actions, as named in actions.py

    def action_read_stacks(self) -> None:
        """Read the stacks of all threads again."""
        if self._read_again is not None:
            self._read_again()
        else:
            self.show_message(_RECORDED)

    def action_save(self, form: str) -> None:
        """Save all stacks."""
        name = snapshot_name(self._stacks.snapshot, "").replace("locktop-", "locktop-stacks-", 1)
        data = STACKS_FORMATS.render(form, self._stacks)
        self.save(partial(save_new, name, STACKS_FORMATS[form].suffix, data))

    def action_copy_stacks(self) -> None:
        """Copy all stacks as text."""
        self.copier.copy("all stacks", lambda: STACKS_FORMATS.render("text", self._stacks).decode())

    def action_show_stack(self) -> None:
        """Show the stack on the whole screen."""
        if not self.has_class(WHOLE_SCREEN):
            self.action_zoom()

    def action_zoom(self) -> None:
        """Give the stack the whole screen, or a part of it again."""
        self.toggle_class(WHOLE_SCREEN)
        is_whole = self.has_class(WHOLE_SCREEN)
        self._list.display = not is_whole
        self.set_focus(self._details if is_whole else self._list)
        self.call_after_refresh(self.apply_filter)

    def action_panel(self, step: int) -> None:
        """Go to the other panel."""
        self.set_focus(self._list if self.focused is self._details else self._details)
        self.call_after_refresh(self.apply_filter)

    def action_help(self) -> None:
        """Show the keys, and the notes of the scan."""
        self.show_help(self._stacks.snapshot.notes, only_keys=True)


def _clock(stacks: AllStacks) -> str:
    try:
        return datetime.fromisoformat(stacks.snapshot.taken_at).astimezone().strftime("%H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return "an unknown time"
