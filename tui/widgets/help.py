"""The help: the keys, and what the columns mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from locktop.collector.model import figure_columns
from locktop.tui.action_types import ScreenActions
from locktop.tui.bindings import help_lines, keys_of, tree_help_lines
from locktop.tui.keymap import KeyTable
from locktop.tui.views.cells import plain
from locktop.tui.widgets.closing_screen import ClosingScreen

#: Cells of a line of the help on a terminal of 80 columns.
WIDTH = 75
COLUMNS: tuple[tuple[str, str], ...] = (
    ("!  *", "before a row: in a deadlock; waits, or is waited for, now"),
    ("grey", "waits for work (cond, semaphore, join): no contention"),
    ("▸  ▾", "a class: locks of one name, and their sums; closed, open"),
    ("HELD BY", "the holder; with ? if other threads release the lock too"),
    ("FOR", "how long the holder has held the lock"),
    ("HOLDER NOW", "the holder's system call, or where it runs or waits"),
    ("WAITERS", "threads that wait for the lock now"),
    ("CONT/s", "acquisitions a second that had to wait; ACQ/s: all"),
    ("WAIT/s", "seconds waited a second by all threads: 3s is 3 stuck"),
    ("HELD%", "share of the last interval that was held; readers add up"),
    ("WAIT MAX", "waited since the start: in all, and the longest"),
    ("CONTEND", "acquisitions that had to wait, since the start"),
    ("HOLD~", "mean time held; from a sample where not all were timed"),
    ("WAIT50 99", "half of the waits, or 99 of 100, were at most so long"),
    ("HOLD50 99", "the same of the timed holds"),
    *((column.title, column.help) for _, column, _ in figure_columns()),
    ("LAST MINUTE", "waiting in parts of 5 s, the tallest is the most of this row"),
    ("SINCE", "how long the thread has been waiting"),
    ("WAIT%", "share of the last interval that waited for held locks"),
    ("TIME", "of the last interval: ━ lock, ▒ wants a CPU, █ on one,"),
    ("", "▚ disk, - other sleep or not known, · waits for work"),
    ("CPU%", "of one core; cpu in the first line: cores in use"),
    ("HOLDS", "locks that the thread holds now"),
    ("WAITED", "for held locks, since the start"),
    ("IN ALL", "of a function: with all that it calls; ITSELF: waited in it"),
    ("potential", "deadlocks that may happen one day; none of them exists now"),
    ("lost", "single waits overwritten unread; the counters have them"),
)


class HelpScreen(ClosingScreen[None], ModalScreen[None]):
    """The keys and the columns, over the screen below."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,f1,enter,space", "dismiss", "close", show=False)
    ]

    def __init__(
        self,
        notes: Sequence[str] = (),
        screen: ScreenActions | None = None,
        *,
        tree_first: bool = False,
    ) -> None:
        """Make the help.

        Args:
            notes: on the snapshot, one text each.
            screen: the screen whose keys alone are shown. None: the keys of the monitor and of
                trees, and the columns.
            tree_first: whether the keys of trees come first.
        """
        super().__init__()
        self._notes = notes
        self._tree_first = tree_first
        self._actions_of = screen

    def compose(self) -> ComposeResult:
        """One scrollable text."""
        with Container(id="help-room"), VerticalScroll(id="help"):
            text = help_text(
                self._notes, self._actions_of, keys_of(self.app), tree_first=self._tree_first
            )
            yield Static(text, markup=False)


def help_text(
    notes: Sequence[str],
    screen: ScreenActions | None = None,
    table: KeyTable | None = None,
    *,
    tree_first: bool = False,
) -> Text:
    """The whole text of the help; for ``screen`` and ``tree_first`` see HelpScreen."""
    text = Text()
    if notes:
        text.append("Notes on this snapshot\n", style="bold")
        text.append("".join(f"- {plain(note)}\n" for note in notes) + "\n")
    text.append("Keys", style="bold")
    text.append("  (Esc closes this, PgDn shows more)\n", style="dim")
    if screen is not None:
        _append_keys(text, help_lines(screen, table))
        return text
    sections = [("", help_lines(table=table)), ("In the call tree", tree_help_lines(table))]
    for head, lines in reversed(sections) if tree_first else sections:
        if head or tree_first:
            text.append(f"\n{head or 'On the first screen'}\n", style="bold")
        _append_keys(text, lines)
    text.append("\nColumns\n", style="bold")
    for name, says in COLUMNS:
        text.append(f"  {name:<10}", style="bold")
        text.append(f" {says}\n")
    text.append("\nTimes have three digits: 850us, 1.23ms, 12.3s, 12m34s.")
    return text


def _append_keys(text: Text, entries: Sequence[tuple[str, str]]) -> None:
    for keys, says in entries:
        text.append(f"  {keys:<10}", style="bold")
        text.append(f" {says}\n")
