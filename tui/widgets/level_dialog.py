"""The dialogue for the level: how much the library does in the process, and what that costs."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from locktop.collector.model import Process
from locktop.collector.sources.levels import LEVELS, NAMES, Level
from locktop.tui.bindings import bindings
from locktop.tui.views.cells import fit_right
from locktop.tui.views.styled_line import make_line
from locktop.tui.views.table import Column, lay_out
from locktop.tui.widgets.fixed_lines import FixedLines
from locktop.tui.widgets.item_list import ItemList

_COLUMNS: tuple[Column[Level], ...] = (
    Column("LEVEL", 9, lambda level: (level.name, "strong")),
    Column("WHAT IT DOES", 20, lambda level: (level.does, "text"), grow=1),
    Column("COST", 5, lambda level: (level.costs, "text"), fitting=fit_right),
)
_NOTES = (
    make_line(
        (" Uncontended lock and unlock; 1.0x is without the library: ", "dim"),
        "locktop bench",
    ),
    make_line(
        (" Enter", "key"), (" set it ", "label"), (" Esc", "key"), (" leave it as it is", "label")
    ),
)


class LevelDialog(ModalScreen[str | None]):
    """The result is the name of the chosen level, None without a choice."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("up", "down", "start", "end"),
        Binding("enter", "choose", "set it", show=False),
        Binding("escape,q,L", "dismiss(None)", "leave", show=False),
    ]

    def __init__(self, process: Process, level: str) -> None:
        """``level``: the level of the library in ``process`` now."""
        super().__init__()
        self._process = process
        self._level = level

    def compose(self) -> ComposeResult:
        """The list of levels, and what the figures mean."""
        with Vertical(id="level"):
            yield ItemList(id="levels")
            yield FixedLines(id="level-notes")

    def on_mount(self) -> None:
        """Put the cursor on the present level."""
        self._list = self.query_one(ItemList)
        self._list.focus()
        self._draw()  # before there is a size, for the next key may come before it
        if self._level in NAMES:
            self._list.choose(NAMES.index(self._level))

    def on_resize(self, _: events.Resize) -> None:
        """Draw again: the columns depend on the width."""
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        table = lay_out(_COLUMNS, self._list.size.width)
        process = self._process
        said = f"of the library in {process.comm} {process.pid}, {self._level} now"
        self._list.set_heads("Level", said, table.heading())
        self._list.show(range(len(LEVELS)), lambda number: table.line(LEVELS[number]))
        self._list.scroll_line(0)
        self._list.move(0)  # into sight
        self.query_one("#level-notes", FixedLines).show(_NOTES)

    def action_choose(self) -> None:
        """Choose the level under the cursor."""
        current = self._list.current
        self.dismiss(LEVELS[current].name if current is not None else None)

    def action_move(self, rows: int) -> None:
        """Go up or down."""
        self._list.move(rows)

    def action_start(self) -> None:
        """Go to the first level."""
        self._list.to_start()

    def action_end(self) -> None:
        """Go to the last level."""
        self._list.to_end()
