"""The keys of the screens, and the bytes that a terminal sends for them."""

from __future__ import annotations

from itertools import count

from textual.keys import _character_to_key

from locktop.tui import keymap
from support.pty_tool import PtyTool

#: Escape in the protocol of kitty: the next byte cannot make another key of it.
ESCAPE = "\x1b[27u"
HELP = "Esc closes this"
#: More than there are screens, entries and filters above each other.
MAX_OPEN = 30
#: A key that comes with the key that closes a screen is lost, so keys are typed again. The pause
#: grows: a busy machine needs time for the keys before.
AGAIN_S, MAX_AGAIN_S = 1.0, 30.0
#: Seconds in which a screen closes on a quiet machine.
_CLOSES_WITHIN_S = 0.1
#: Characters that no keymap has, and a number for each use.
_UNBOUND = "@&~^"
_uses = count()
_NAMED = {
    "enter": "\r", "escape": "\x1b", "tab": "\t", "shift+tab": "\x1b[Z", "space": " ",
    "backspace": "\x7f", "up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D",
    "shift+up": "\x1b[1;2A", "shift+down": "\x1b[1;2B", "shift+right": "\x1b[1;2C",
    "shift+left": "\x1b[1;2D", "home": "\x1b[H", "end": "\x1b[F", "pageup": "\x1b[5~",
    "pagedown": "\x1b[6~", "insert": "\x1b[2~", "delete": "\x1b[3~",
    "f1": "\x1bOP", "f2": "\x1bOQ", "f3": "\x1bOR", "f4": "\x1bOS", "f5": "\x1b[15~",
    "f6": "\x1b[17~", "f7": "\x1b[18~", "f8": "\x1b[19~", "f9": "\x1b[20~", "f10": "\x1b[21~",
}  # fmt: skip
_CHARACTERS = {_character_to_key(chr(code)): chr(code) for code in range(33, 127)}


def bytes_of(key: str) -> str:
    """Return what the terminal sends for ``key``. Raises KeyError for an unknown name."""
    if key in _NAMED:
        return _NAMED[key]
    if key.startswith("ctrl+") and len(key) == len("ctrl+") + 1:
        return chr(ord(key[-1]) & 0x1F)
    return key if len(key) == 1 else _CHARACTERS[key]


def own_keys() -> list[str]:
    """The input of each key of the screens, except those that quit or open an editor."""
    left_out = ("quit", "edit")  # an editor would stay
    table = keymap.shipped().keys
    keys = dict.fromkeys(
        key for action, keys in table.items() if action not in left_out for key in keys
    )
    return [bytes_of(key) for key in keys]


def leaves_all(tool: PtyTool) -> bool:
    """Leave all that is open, open the help, and close it; return whether that works.

    Then the screen has handled all keys from before.
    """
    again_s = AGAIN_S
    for _ in range(MAX_OPEN):
        _leave_one(tool)
        # Help of the round before would count as the answer, and then remain again.
        is_closed = HELP not in tool.text or tool.comes(lambda text: HELP not in text, again_s)
        tool.press("?")
        if is_closed and tool.comes(lambda text: HELP in text, again_s):
            tool.press(ESCAPE)
            is_closed = tool.comes(lambda text: HELP not in text, again_s)
            # Keys from before may have opened the help.
            if is_closed and takes_words(tool, again_s):
                return True
        again_s = min(1.3 * again_s, MAX_AGAIN_S)
    return False


def takes_words(tool: PtyTool, within_s: float) -> bool:
    """Type words that were never typed before into the filter; return whether they appear."""
    number = next(_uses)
    words = "".join(
        _UNBOUND[number // len(_UNBOUND) ** digit % len(_UNBOUND)] for digit in range(8)
    )
    tool.press(f"/{words}")
    if not tool.comes(lambda text: words in text, within_s):
        return False
    tool.press(ESCAPE)
    return tool.comes(lambda text: words not in text, within_s)


def _leave_one(tool: PtyTool) -> None:
    before = _frame(tool.text)
    tool.press(ESCAPE)
    tool.comes(lambda text: _frame(text) != before, _CLOSES_WITHIN_S)


def _frame(text: str) -> tuple[str, str]:
    """The lines that change if a screen opens or closes: the first, with the view, and the last."""
    lines = text.splitlines()
    return lines[0], lines[-1]
