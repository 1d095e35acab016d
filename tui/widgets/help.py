"""The help: keys and what the columns mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from locktop.tui.bindings import help_lines
from locktop.tui.lines.figures import plain

COLUMNS: tuple[tuple[str, str], ...] = (
    ("!  *", "before a row: in a deadlock; waits, or is waited for, now"),
    ("WAITERS", "threads that wait for it now"),
    ("CONT/s", "acquisitions a second that had to wait"),
    ("WAIT/s", "seconds waited in a second by all threads together: 3s is three threads stuck"),
    ("HELD%", "of the last interval"),
    ("WAIT MAX", "waited since the start: in all, and the longest"),
    ("HOLD~", "mean time held; from a sample where not every hold was timed"),
    ("WAIT%", "of the last interval that the thread waited for locks somebody held"),
    ("grey", "waits for work (condition variable, semaphore, join): not contention"),
)


class HelpScreen(ModalScreen[None]):
    """Keys and columns, over the dimmed monitor."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,f1,enter,space", "dismiss", "close", show=False)
    ]

    def __init__(self, notes: Sequence[str] = ()) -> None:
        """``notes``: what there is to know of the picture."""
        super().__init__()
        self._notes = notes

    def compose(self) -> ComposeResult:
        """One text that scrolls."""
        with VerticalScroll(id="help"):
            yield Static(_text(self._notes), markup=False)


def _text(notes: Sequence[str]) -> Text:
    text = Text()
    if notes:
        text.append("Notes on this picture\n", style="bold")
        text.append("".join(f"  {plain(note)}\n" for note in notes) + "\n")
    text.append("Keys\n", style="bold")
    for keys, says in help_lines():
        text.append(f"  {keys:<10}", style="bold")
        text.append(f" {says}\n")
    text.append("\nColumns\n", style="bold")
    for name, says in COLUMNS:
        text.append(f"  {name:<10}", style="bold")
        text.append(f" {says}\n")
    text.append("\nTimes have three digits: 850us, 1.23ms, 12.3s, 12m34s. Esc closes this.")
    return text
