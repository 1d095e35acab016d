"""The dialogue before the screen quits, if the program would end with it."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from locktop.tui.views.cells import plain
from locktop.tui.views.styled_line import make_line
from locktop.tui.widgets.closing_screen import ClosingScreen
from locktop.tui.widgets.fixed_lines import FixedLines


class QuitDialog(ClosingScreen[bool | None], ModalScreen[bool | None]):
    """The result is whether the program ends, None if the screen stays."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "dismiss(True)", "end it", show=False),
        Binding("k", "dismiss(False)", "leave it running", show=False),
        # Also q: a key that is held down must not be an answer.
        Binding("escape,n,q", "dismiss(None)", "go back", show=False),
    ]

    def __init__(self, name: str) -> None:
        """``name``: name and pid of the program."""
        super().__init__()
        self._name_of_program = name
        self._lines = FixedLines(id="quit-lines")

    def compose(self) -> ComposeResult:
        """The question and its answers."""
        with Vertical(id="quit"):
            yield self._lines

    def on_mount(self) -> None:
        """Show the lines."""
        self.call_after_refresh(self._draw)

    def on_resize(self) -> None:
        """Cut the lines to the new width."""
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        self._lines.show(
            (
                make_line((f" End {plain(self._name_of_program)}?", "strong")),
                make_line(
                    (" y", "key"), (" end it and quit ", "label"),
                    (" k", "key"), (" quit, leave it running ", "label"),
                    (" Esc", "key"), (" go back", "label"),
                ),
            )
        )  # fmt: skip
