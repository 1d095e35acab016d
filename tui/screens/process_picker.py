"""The process picker: a list of processes with a filter."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from locktop.collector.errors import LocktopError
from locktop.collector.sources.discover import Candidate
from locktop.tui.bindings import bindings
from locktop.tui.terminal.driver import Meter
from locktop.tui.themed_app import ThemedApp, run_app
from locktop.tui.views.cells import fit_right
from locktop.tui.views.sorting import matches
from locktop.tui.views.styled_line import Line, Span, make_line
from locktop.tui.views.table import Cell, Column, lay_out
from locktop.tui.widgets.fixed_lines import FixedLines
from locktop.tui.widgets.item_list import ItemList
from locktop.tui.widgets.list_screen import ListScreen

if TYPE_CHECKING:
    from locktop.collector.sources.attach import Source

Lister = Callable[[], Sequence[Candidate]]
Attach = Callable[[int], "Source"]

_KEYS: tuple[Span | str, ...] = tuple(
    run
    for key, says in (
        ("Enter", "watch"),
        ("/", "filter"),
        ("r", "scan again"),
        ("Esc", "all"),
        ("q", "quit"),
    )
    for run in ((f" {key}", "key"), (f" {says} ", "label"))
)


class ProcessPickerScreen(ListScreen):
    """The processes that can be watched, then the others with the reason why they cannot."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("quit", "filter", "theme"),
        *bindings("up", "down", "page_up", "page_down", "start", "end"),
        *bindings("oldest", "newest"),
        Binding("enter", "pick", "watch", show=False),
        Binding("escape", "everything", "all", show=False),
        Binding("r", "rescan", "scan again", show=False),
    ]

    def __init__(self, lister: Lister, attach: Attach) -> None:
        super().__init__()
        self._lister = lister
        self._open_source = attach
        self._found: dict[int, Candidate] = {}

    def compose(self) -> ComposeResult:
        """The list, with a line of advice above and the keys below."""
        yield FixedLines(id="status")
        yield FixedLines(id="headline")
        yield ItemList(id="processes")
        yield from self.compose_footer()

    def on_mount(self) -> None:
        """Scan for processes."""
        self._status = self.query_one("#status", FixedLines)
        self._headline = self.query_one("#headline", FixedLines)
        self._list = self.query_one(ItemList)
        self._list.focus()
        self.action_rescan()

    def on_resize(self, _: events.Resize) -> None:
        """The columns depend on the width."""
        self.call_after_refresh(self._draw)

    def action_rescan(self) -> None:
        """Scan for processes again."""
        self._found = {candidate.pid: candidate for candidate in self._lister()}
        self._draw()

    def _draw(self) -> None:
        width = self.size.width
        ready = sum(candidate.preloaded for candidate in self._found.values())
        self._status.show((make_line((" locktop", "strong"), "  which process?"),))
        self._headline.show((_advice(ready),))
        self.footer.set_keys(make_line(*_KEYS))
        visible = [pid for pid, c in self._found.items() if matches(_words(c), self.filter_words)]
        table = lay_out(_COLUMNS, width)
        said = f"{ready} of {len(self._found)} run with the library"
        if self.filter_words:
            said += f", with “{self.filter_words}”"
        self._list.set_heads("Processes", said, table.heading())
        self._list.show(visible, lambda pid: table.line(self._found[pid]))

    def active_list(self) -> ItemList:
        """See ListScreen."""
        return self._list

    def apply_filter(self) -> None:
        """See ListScreen."""
        self._draw()

    def action_everything(self) -> None:
        """Clear the filter."""
        self.filter.value = ""
        self.filter.close()

    def action_pick(self) -> None:
        """Choose the process under the cursor, or show why it cannot be watched."""
        current = self._list.current
        if current is None:
            return
        candidate = self._found[current]
        try:
            self.app.exit(self._open_source(candidate.pid))
        except LocktopError as error:
            self.show_error(error)
            self.action_rescan()


class PickerApp(ThemedApp["Source"]):
    """Lets the user choose a process; the result is a source for it."""

    TITLE = "locktop"

    def __init__(self, lister: Lister, attach: Attach, theme: str | None = None) -> None:
        super().__init__(theme, Meter(), os.environ)
        self._picker = ProcessPickerScreen(lister, attach)

    def get_default_screen(self) -> ProcessPickerScreen:
        """The list is the only screen."""
        return self._picker


def pick(theme: str | None, attach: Attach) -> tuple[Source | None, int]:
    """Let the user pick a process; return its source, None without a choice, and the status."""
    from locktop.collector.sources.discover import candidates

    app = PickerApp(candidates, attach, theme)
    status = run_app(app)
    return app.return_value, status


def _advice(ready: int) -> Line:
    if ready:
        return make_line((" The processes that run with the library are first.", "dim"))
    return make_line(
        (" No process runs with the library. ", "waiting"),
        ("Enter", "key"),
        " samples one without it; ",
        ("locktop run", "strong"),
        " starts one with it.",
    )


def _words(candidate: Candidate) -> str:
    return f"{candidate.pid} {candidate.user} {candidate.comm} {candidate.cmdline}"


def _style(candidate: Candidate) -> str:
    return "text" if candidate.preloaded else "dim"


def _why(candidate: Candidate) -> Cell:
    # The column is narrow. Enter shows the whole reason.
    why = candidate.why.removeprefix("it ").removeprefix("is ")
    return ("ready", "running") if candidate.preloaded else (why, "dim")


_COLUMNS: tuple[Column[Candidate], ...] = (
    Column("PID", 7, lambda c: (str(c.pid), _style(c)), fitting=fit_right),
    Column("USER", 9, lambda c: (c.user, _style(c))),
    Column("THREADS", 7, lambda c: (str(c.threads), _style(c)), fitting=fit_right),
    Column("NAME", 12, lambda c: (c.comm, "strong" if c.preloaded else "dim")),
    Column("COMMAND", 14, lambda c: (c.cmdline, _style(c)), grow=2),
    Column("", 16, _why, grow=3),
)
