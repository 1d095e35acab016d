"""Entries in the last line: the words of the filter, and a time to go to."""

from __future__ import annotations

from collections.abc import Callable

from textual import events
from textual.widget import Widget
from textual.widgets import Input

from locktop.tui.widgets.scroll_panel import ScrollPanel


class Filter(Input):
    """The input of the filter, which handles fast keys in their order.

    Textual gives a key to the widget that had the focus when the key came. So the filter may get
    keys that were typed after Enter or Escape. These keys are for the list, or for the screen or
    the entry that such a key opened.
    """

    #: The id, the class of the screen while the entry is open, and what an empty entry says.
    NAME, OPENS, SAYS = "filter", "filtering", "show only rows with these words"

    def __init__(self, back_to: Callable[[], Widget], want: Callable[[str], None]) -> None:
        """Make the filter.

        Args:
            back_to: returns the widget that gets the focus when the filter closes.
            want: is called with the words when the filter closes.
        """
        super().__init__(placeholder=self.SAYS, id=self.NAME, select_on_focus=False)
        self.cursor_blink = False
        self._back_to = back_to
        self._set_filter_words = want

    @property
    def is_open(self) -> bool:
        """Whether the filter has the focus."""
        return self.is_attached and self.screen.focused is self

    def open(self) -> None:
        """Show the filter and give it the focus. A key may come before the screen has widgets."""
        if not self.is_attached:
            return
        self.screen.add_class(self.OPENS)
        # The next key may come before Textual has applied the styles of the class.
        self.display = True
        self.screen.set_focus(self, scroll_visible=False)

    def close(self) -> None:
        """Give the focus back; the words stay."""
        self.screen.remove_class(self.OPENS)
        self.display = False
        self.screen.set_focus(self._back_to())
        self._set_filter_words(self.value)

    def close_if_left(self) -> None:
        """Close without a change of the focus, if another widget has got it."""
        if self.display and not self.is_open:
            self.screen.remove_class(self.OPENS)
            self.display = False

    async def on_key(self, event: events.Key) -> None:
        """Handle the key at once; Textual would handle the keys in the queue first."""
        if self.is_open and event.key not in ("enter", "escape", "backspace"):
            return
        event.prevent_default()
        event.stop()
        if not self.is_open:
            await self._pass_on(event)
        elif event.key == "backspace":
            self.action_delete_left()
        else:
            if event.key == "escape":
                self.value = ""
            self.close()

    async def _pass_on(self, event: events.Key) -> None:
        """Give a key that came after the end of the entry to what the user sees now."""
        top = self.app.screen
        target = top.focused or top
        if target is self:  # the app ends, and nobody takes keys any more
            return
        if not self.is_attached or top is not self.screen or isinstance(target, Filter):
            target._forward_event(events.Key(event.key, event.character))
        elif bound := top.active_bindings.get(event.key):
            await self.app.run_action(bound.binding.action, bound.node)


class FindEntry(Filter):
    """The words of a row to go to. The list goes along while the user types."""

    NAME, OPENS, SAYS = "find", "finding", "go to the next row with these words"

    def __init__(self, panel: Callable[[], ScrollPanel], want: Callable[[str], None]) -> None:
        """``panel``: returns the panel with the rows. For ``want`` see Filter."""
        super().__init__(lambda: self.panel, want)
        self._choose_panel = panel

    @property
    def panel(self) -> ScrollPanel:
        """The panel with the rows. After the entry was open, the one used before."""
        return self._searched

    def open(self) -> None:
        """Show an empty entry. The search begins at the present row."""
        self._searched = self._choose_panel()
        self._searched.set_origin()
        self.value = ""
        super().open()


class MomentEntry(Filter):
    """The time to go to; Escape leaves the screen where it is."""

    NAME, OPENS = "time", "choosing-time"
    SAYS = "go to a time: 12:03:04, -35s (before the end), +10m (after the begin), 50%"

    def open(self) -> None:
        """Show an empty entry."""
        self.value = ""
        super().open()
