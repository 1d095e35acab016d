"""The filter: words typed into the last line."""

from __future__ import annotations

from collections.abc import Callable

from textual import events
from textual.widget import Widget
from textual.widgets import Input


class Filter(Input):
    """However fast keys come, each finds what the one before it left.

    Textual gives a key to what had the focus when it came, so this one may get keys that were
    typed after Enter or Escape: they are for the list.
    """

    def __init__(self, back_to: Callable[[], Widget], want: Callable[[str], None]) -> None:
        """``back_to`` gives what gets the focus afterwards; ``want`` hears the words at the end."""
        super().__init__(
            placeholder="show only what has these words in it", id="filter", select_on_focus=False
        )
        self.cursor_blink = False
        self._back_to = back_to
        self._set_filter_words = want

    @property
    def is_open(self) -> bool:
        """Whether keys go here."""
        return self.screen.focused is self

    def open(self) -> None:
        """Type from now on."""
        self.screen.add_class("filtering")
        # The next key may be here already, before the styles of the class are applied.
        self.display = True
        self.screen.set_focus(self, scroll_visible=False)

    def close(self) -> None:
        """Give the keys back; the words stay."""
        self.screen.remove_class("filtering")
        self.display = False
        self.screen.set_focus(self._back_to())
        self._set_filter_words(self.value)

    async def on_key(self, event: events.Key) -> None:
        """Do at once what Textual would do after the keys that are waiting already."""
        if self.is_open and event.key not in ("enter", "escape", "backspace"):
            return
        event.prevent_default()
        event.stop()
        if not self.is_open:
            bound = self.screen.active_bindings.get(event.key)
            if bound is not None:
                await self.app.run_action(bound.binding.action, bound.node)
        elif event.key == "backspace":
            self.action_delete_left()
        else:
            if event.key == "escape":
                self.value = ""
            self.close()
