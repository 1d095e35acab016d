"""The dialogue for the level: how much the library does in the process, and what that costs."""

from __future__ import annotations

from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from locktop.collector.model import Process
from locktop.collector.sources.levels import LEVELS, NAMES, Level
from locktop.tui.bindings import bindings
from locktop.tui.views.cells import fit_right, plain
from locktop.tui.views.styled_line import Line, make_line
from locktop.tui.views.table import Column, lay_out
from locktop.tui.widgets.closing_screen import ClosingScreen
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


class LevelDialog(ClosingScreen[str | None], ModalScreen[str | None]):
    """The result is the name of the chosen level, None without a choice."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("up", "down", "start", "end", "oldest", "newest"),
        Binding("enter", "choose", "set it", show=False),
        Binding("y", "confirm", "yes", show=False),
        Binding("escape,q,L", "dismiss(None)", "leave", show=False),
    ]

    def __init__(self, process: Process, level: str, asks: bool) -> None:
        """Args:
        process: the process.
        level: the level of the library in the process now.
        asks: whether the user must confirm a new level.
        """
        super().__init__()
        self._process = process
        self._level = level
        self._asks = asks
        self._wanted: str | None = None  # the level to confirm
        self._list = ItemList(id="levels")
        self._notes_below = FixedLines(id="level-notes")

    def compose(self) -> ComposeResult:
        """The list of levels, and what the figures mean."""
        with Vertical(id="level"):
            yield self._list
            yield self._notes_below

    def on_mount(self) -> None:
        """Put the cursor on the present level."""
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
        self._notes_below.show(self._notes())

    def _notes(self) -> tuple[Line, ...]:
        if self._wanted is None:
            return _NOTES
        name = f"{self._process.comm} {self._process.pid}"
        return (
            make_line((f" locktop did not start {plain(name)}. Set {self._wanted}?", "waiting")),
            make_line((" y", "key"), (" set it ", "label"), (" Esc", "key"), (" leave", "label")),
        )

    def action_choose(self) -> None:
        """Choose the level under the cursor, or ask before that."""
        wanted = self._chosen_level()
        if self._asks and wanted not in (None, self._level):
            self._wanted = wanted
            self._draw()
        else:
            self.dismiss(wanted)

    def action_confirm(self) -> None:
        """Choose the level that the dialogue asks about."""
        if self._wanted is not None:
            self.dismiss(self._wanted)

    @on(ItemList.Moved)
    def _moved(self) -> None:
        """Another level is another question."""
        if self._wanted is not None and self._chosen_level() != self._wanted:
            self._wanted = None
            self._draw()

    def _chosen_level(self) -> str | None:
        current = self._list.current
        return LEVELS[current].name if current is not None else None

    def action_move(self, rows: int) -> None:
        """Go up or down."""
        self._list.move(rows)

    def action_start(self) -> None:
        """Go to the first level."""
        self._list.to_start()

    def action_end(self) -> None:
        """Go to the last level."""
        self._list.to_end()

    action_oldest, action_newest = action_start, action_end
