"""The changes that were sent add up to the screen, in text and in colours.

Ctrl+L has the screen painted whole, for an empty terminal. This one and the terminal that got all
changes must not differ in any cell.
"""

from __future__ import annotations

import time

import pytest
from support.emulator import Emulator, differences
from support.keys import own_keys
from support.terminal import Terminal

SIZE = (120, 40)
PAINT_ALL = "\x0c"
ESCAPE = "\x1b[27u"
#: Keys that leave files, or that need a program of their own.
NOT_TYPED = ("w", "W", "M", "y", "Y", "\x19", "p", " ")
WALK = (
    "j", "j", "s", "S", "\t", "i", "?", "\x1b[6~", ESCAPE, "/", "s", "h", ESCAPE, "z", "j", "z",
    "o", ESCAPE, "\t", "\x1b[F", "c", "\r", ESCAPE, ESCAPE, "t", "\x10", "s", ESCAPE, "1", "2",
)  # fmt: skip


#: Seconds after a new size in which the screen is right.
SETTLED_S = 0.5


class Replay:
    """A terminal and what it shows after all output."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self._emulator = Emulator(*SIZE)
        self._fed = 0

    def resize(self, width: int, height: int) -> None:
        self._feed()
        self._emulator.resize(width, height)
        self.terminal.resize(width, height)

    def check(self, size: tuple[int, int] = SIZE) -> None:
        """Compare all cells with those of a whole painting."""
        terminal = self.terminal
        while True:  # until no message came or went in between
            text = self._settled()
            self._feed()
            mark = self._fed
            terminal.press(PAINT_ALL)
            later = self._settled()
            while terminal.received == mark:
                later = self._settled()  # the key has not been read yet
            if later == text:
                break
        whole = Emulator(*size)
        whole.feed(terminal.since(mark))
        assert whole.text.strip(), "nothing was painted"
        assert differences(self._emulator, whole) == []

    def _settled(self) -> str:
        """The text that the screen is to show, when all output has come."""
        answer = self.terminal.tell("settle")
        self.terminal.wait_bytes(int(answer["queued"]))
        return str(answer["text"])

    def _feed(self) -> None:
        data = self.terminal.since(self._fed)
        self._fed += len(data)
        self._emulator.feed(data)


@pytest.mark.parametrize("names", ["many", "hostile"])
def test_after_each_key_all_cells_are_right(names: str, terminal: Terminal) -> None:
    replay = Replay(terminal)
    for number, key in enumerate(WALK, start=1):
        terminal.frame("hostile" if names == "hostile" and number % 3 else f"tick {number}")
        terminal.press(key)
        replay.check()


def test_after_all_keys_all_cells_are_right(terminal: Terminal) -> None:
    replay = Replay(terminal)
    for number, key in enumerate(own_keys(), start=1):
        if key not in NOT_TYPED:
            terminal.press(key)
            terminal.frame("settle")
            terminal.frame("hostile" if number % 2 else f"tick {number}")
    replay.check()


@pytest.mark.parametrize("size", [(80, 24), (133, 50), SIZE])
def test_after_a_new_size_all_cells_are_right(size: tuple[int, int], terminal: Terminal) -> None:
    replay = Replay(terminal)
    terminal.frame("hostile")
    replay.resize(*size)
    # A widget may paint for the size before; half a second later the app paints all again.
    end = time.monotonic() + 2 * SETTLED_S
    while time.monotonic() < end:
        terminal.frame("settle")
    replay.check(size)


def test_a_new_size_that_is_undone_at_once_has_the_screen_painted(terminal: Terminal) -> None:
    mark = terminal.received
    terminal.resize(80, 24)
    terminal.resize(*SIZE)
    terminal.wait_text("shard1.mutex", mark)
