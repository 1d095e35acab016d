"""A dialogue over the monitor: a list of rows, of which the user marks some or takes one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from msgspec import Struct
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from locktop.tui.bindings import bindings
from locktop.tui.views.styled_line import Line, make_line
from locktop.tui.widgets.closing_screen import ClosingScreen
from locktop.tui.widgets.fixed_lines import FixedLines
from locktop.tui.widgets.item_list import ItemList


class Choice(Struct, frozen=True):
    """One row."""

    name: str
    text: str = ""  # what stands behind the name
    is_marked: bool | None = None  # None: the row cannot be marked


class Chosen(Struct, frozen=True):
    """The answer of the user: the key, the row under the cursor, and the marked rows in order."""

    key: str
    name: str
    marked: tuple[str, ...]


class ChoiceDialog(ClosingScreen[Chosen | None], ModalScreen[Chosen | None]):
    """The result is what the user chose, None without a choice."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("up", "down", "page_up", "page_down", "start", "end", "oldest", "newest"),
        Binding("space,x", "mark", "mark", show=False),
        Binding("enter", "take('enter')", "take", show=False),
        Binding("a", "take('a')", "take", show=False),
        Binding("s", "take('s')", "take", show=False),
        Binding("delete", "take('delete')", "take", show=False),
        Binding("escape,q", "dismiss(None)", "leave", show=False),
    ]

    def __init__(
        self, title: str, choices: Sequence[Choice], keys: Sequence[tuple[str, str]]
    ) -> None:
        """Args:
        title: what the rows are.
        choices: the rows.
        keys: the keys that end the dialogue, and what each does.
        """
        super().__init__()
        self._title = title
        self._choices = list(choices)
        self._keys = [*keys, ("Esc", "leave")]
        self._takes = {key.lower() for key, _ in keys}
        self._list = ItemList(id="choices")
        self._keys_below = FixedLines(id="choice-keys")

    def compose(self) -> ComposeResult:
        """The list, and the keys below."""
        with Vertical(id="choice"):
            yield self._list
            yield self._keys_below

    def on_mount(self) -> None:
        """Put the cursor on the first row."""
        self._list.focus()
        self._draw()

    def on_resize(self, _: events.Resize) -> None:
        """Draw again for the new width."""
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        self._list.set_heads(self._title, "")
        self._list.show(range(len(self._choices)), lambda number: _row(self._choices[number]))
        spans = [
            part
            for key, does in self._keys
            for part in ((f" {key}", "key"), (f" {does} ", "label"))
        ]
        self._keys_below.show((make_line(*spans),))

    def action_mark(self) -> None:
        """Mark the row under the cursor, or no more."""
        number = self._list.current
        if number is None or self._choices[number].is_marked is None:
            return
        choice = self._choices[number]
        self._choices[number] = Choice(choice.name, choice.text, not choice.is_marked)
        self._list.chosen = True
        self._draw()

    def action_take(self, key: str) -> None:
        """End the dialogue with a key, if the key has a meaning here."""
        number = self._list.current
        if key in self._takes:
            name = self._choices[number].name if number is not None else ""
            marked = tuple(choice.name for choice in self._choices if choice.is_marked)
            self.dismiss(Chosen(key, name, marked))

    def action_move(self, rows: int) -> None:
        """Go up or down."""
        self._list.move(rows)

    def action_page(self, pages: int) -> None:
        """Go a page up or down."""
        self._list.move(pages * max(1, self._list.page - 1))

    def action_start(self) -> None:
        """Go to the first row."""
        self._list.to_start()

    def action_end(self) -> None:
        """Go to the last row."""
        self._list.to_end()

    action_oldest, action_newest = action_start, action_end


def _row(choice: Choice) -> Line:
    mark = {None: "", True: "[x] ", False: "[ ] "}[choice.is_marked]
    return make_line(f" {mark}", (choice.name, "strong"), (f"  {choice.text}", "dim"))
