"""All actions of a screen by name: the user types a part of one, and Enter runs it."""

from __future__ import annotations

from contextlib import ExitStack
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.geometry import Size
from textual.screen import ModalScreen

from locktop.tui.action_types import ScreenActions
from locktop.tui.actions import ACTIONS
from locktop.tui.keymap import KeyTable
from locktop.tui.views.styled_line import Line, make_line
from locktop.tui.widgets.closing_screen import ClosingScreen
from locktop.tui.widgets.fixed_lines import FixedLines
from locktop.tui.widgets.item_list import ItemList
from locktop.tui.widgets.strip_cache import CURSOR, PLAIN

#: The palette does not offer itself.
_OWN = "palette"
_KEYS = (
    (" Enter", "key"), (" run it ", "label"), (" Esc", "key"), (" leave ", "label"),
    (" Up Down", "key"), (" choose ", "label"),
)  # fmt: skip
#: The palette appears after this time in any case.
_PAINTED_AFTER_S = 2.0
_KEY_WIDTH, _NAME_WIDTH = 11, 18


class _ActionList(ItemList, can_focus=False):
    """The list without the focus: the keys are for the screen alone, in their order."""

    def __init__(self, most: int, width: int) -> None:
        """``most``: the number of all actions; ``width``: of the terminal."""
        super().__init__(id="palette-actions")
        self._most = most
        # Set later, the height would cost a second layout, and that a second painting.
        self.virtual_size = Size(width, most + self.heads)

    def fit_height(self) -> None:
        """Keep the height for all actions: a new one would paint the whole screen at a letter."""
        wanted = Size(self.app.size.width, self._most + self.heads)
        if wanted != self.virtual_size:
            self.virtual_size = wanted

    def content_line(self, number: int) -> tuple[Line, int]:
        line, mark = super().content_line(number)
        return line, CURSOR if mark != PLAIN else PLAIN


class Palette(ClosingScreen[str | None], ModalScreen[str | None]):
    """The result is the action to run, as Textual names it; None without a choice.

    The screen handles each typed character itself, so keys that come fast stay in their order.
    """

    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,ctrl+p", "move(-1)", "up", show=False),
        Binding("down,ctrl+n", "move(1)", "down", show=False),
        Binding("pageup", "page(-1)", "a page up", show=False),
        Binding("pagedown", "page(1)", "a page down", show=False),
        Binding("enter", "choose", "run it", show=False),
        Binding("backspace", "delete", "delete a character", show=False),
        Binding("ctrl+u", "clear", "delete all characters", show=False),
        Binding("escape", "dismiss(None)", "leave", show=False),
    ]

    def __init__(self, screen: ScreenActions, table: KeyTable, width: int) -> None:
        """Make the list.

        Args:
            screen: whose actions the list has.
            table: the keys of the user.
            width: of the terminal, in cells.
        """
        super().__init__()
        self._names = [name for name in dict.fromkeys(screen.actions) if name != _OWN]
        self._table = table
        self._title = f"of the {screen.name}"
        self._typed = ""
        self._matching_actions: list[int] = []
        self._curtain = ExitStack()
        self._list = _ActionList(len(self._names), width)
        self._words = FixedLines(id="palette-words")
        self._keys_below = FixedLines(id="palette-keys")

    def compose(self) -> ComposeResult:
        """The list, the words typed so far, and the keys of the palette."""
        with Vertical(id="palette"):
            yield self._list
            yield self._words
            yield self._keys_below

    def on_mount(self) -> None:
        """Show all actions."""
        # Each step of the first layout would paint the whole screen.
        self._curtain.enter_context(self.app.batch_update())
        self.set_timer(_PAINTED_AFTER_S, self._curtain.close)
        self._draw()  # before there is a size, for the next key may come before it

    def on_resize(self, _: events.Resize) -> None:
        """Draw for the new size."""
        self.call_after_refresh(self._draw)

    def on_screen_resume(self) -> None:
        """Paint: the layout is done, or another screen above has closed."""
        self.call_after_refresh(self._draw_whole)

    def on_unmount(self) -> None:
        """Paint what is below."""
        self._curtain.close()

    def _draw_whole(self) -> None:
        self._draw()
        self._curtain.close()

    def _draw(self) -> None:
        self._matching_actions = self._matches(self._typed.casefold().split())
        typed = make_line((" Action: ", "label"), (self._typed, "strong"), ("▏", "key"))
        self._words.show((typed,))
        self._list.set_heads("Actions", self._title)
        self._list.show(self._matching_actions, self._line)
        self._keys_below.show((make_line(*_KEYS),))

    def _matches(self, words: list[str]) -> list[int]:
        """Return the numbers of the actions with all ``words``.

        First come names that begin with the words, then names that have them. Last come actions
        that have a word in their description alone. Enter runs the first one.
        """
        ranked = []
        for number, action in enumerate(self._names):
            name = action.replace("_", " ")
            if name.startswith(" ".join(words)):
                rank = 0
            elif all(word in name for word in words):
                rank = 1
            elif all(word in f"{name} {ACTIONS[action].help}".casefold() for word in words):
                rank = 2
            else:
                continue
            ranked.append((rank, number))
        return [number for _, number in sorted(ranked)]

    def _line(self, number: int) -> Line:
        name = self._names[number]
        return make_line(
            (f" {self._table.label(name):<{_KEY_WIDTH}}", "key"),
            (f"{name.replace('_', ' '):<{_NAME_WIDTH}} ", "strong"),
            ACTIONS[name].help,
        )

    def on_key(self, event: events.Key) -> None:
        """Add the character of a key to the words."""
        if event.is_printable and event.character is not None:
            event.stop()
            self._type(self._typed + event.character)

    def _type(self, text: str) -> None:
        self._typed = text
        self._list.chosen = False  # the cursor goes to the first action found
        self._draw()

    def action_delete(self) -> None:
        """Delete the last character."""
        self._type(self._typed[:-1])

    def action_clear(self) -> None:
        """Delete all characters."""
        self._type("")

    def action_move(self, rows: int) -> None:
        """Go up or down."""
        self._list.move(rows)

    def action_page(self, pages: int) -> None:
        """Go a page up or down."""
        self._list.move(pages * max(1, self._list.page - 1))

    def action_choose(self) -> None:
        """Run the action under the cursor."""
        current = self._list.current
        if current is not None:
            self.dismiss(ACTIONS[self._names[current]].textual_action)
