"""A terminal with any bytes, a terminal that goes away, and a screen that hangs."""

from __future__ import annotations

import random
import signal

import pytest
from support.terminal import LONG_ENOUGH_S, Terminal


@pytest.mark.parametrize(
    "data",
    [b"\xe9", b"\xff\xfe\x80", b"\xc3\x1b[A", b"\x1b[M #\xe9", b"\x1b[M \xc3\xa9", b"\x1b[M qq"],
    ids=["Latin-1", "no text", "cut character", "X10", "X10 like UTF-8", "X10 like keys"],
)
def test_any_input_leaves_the_screen_alive(terminal: Terminal, data: bytes) -> None:
    mark = terminal.received
    terminal.press(data + b"p")
    terminal.wait_text("PAUSED", mark)
    terminal.press("q")
    assert terminal.process.wait(LONG_ENOUGH_S) == 0


def test_a_paste_of_another_encoding_leaves_the_filter_in_use(terminal: Terminal) -> None:
    mark = terminal.received
    terminal.press(b"/\x1b[200~caf\xe9\x1b[201~x")
    terminal.wait_text("caf\ufffd", mark)
    terminal.press("\r")
    assert terminal.process.poll() is None


def test_a_hang_up_ends_a_screen_that_writes_nothing(terminal: Terminal) -> None:
    """The terminal does not control the child, so the kernel sends no signal."""
    terminal.hang_up()
    assert terminal.process.wait(LONG_ENOUGH_S) == 128 + signal.SIGHUP


def test_sigterm_ends_a_screen_that_hangs(terminal: Terminal) -> None:
    assert terminal.modes != terminal.modes_before
    terminal.tell("stick")
    mark = terminal.received
    terminal.process.send_signal(signal.SIGTERM)
    assert terminal.process.wait(LONG_ENOUGH_S) == 128 + signal.SIGTERM
    terminal.wait_text("\x1b[?1049l", mark)
    terminal.wait_text("\x1b[?25h", mark)
    assert terminal.modes == terminal.modes_before


def test_sigterm_ends_a_screen_that_hangs_on_an_unread_terminal(terminal: Terminal) -> None:
    mark = terminal.received
    terminal.fill()
    terminal.tell("stick")
    terminal.process.send_signal(signal.SIGTERM)
    assert terminal.process.wait(LONG_ENOUGH_S) == 128 + signal.SIGTERM
    assert terminal.modes == terminal.modes_before
    terminal.go_on()
    terminal.wait_text("\x1b[?1049l", mark)


def test_a_hang_up_ends_a_screen_that_hangs(terminal: Terminal) -> None:
    terminal.tell("stick")
    terminal.hang_up()
    assert terminal.process.wait(LONG_ENOUGH_S) == 128 + signal.SIGHUP


def test_random_sizes_leave_the_keys_in_use(terminal: Terminal) -> None:
    sizes = random.Random(18)
    for keys in ("", "?", "\x1bL", "\x1b", "d", "\t", "c"):
        terminal.press(keys)
        for _ in range(8):
            terminal.resize(sizes.randint(1, 200), sizes.randint(1, 60))
            terminal.resize(sizes.randint(1, 12), sizes.randint(1, 40))
        terminal.tell("settle")
    terminal.resize(120, 40)
    terminal.press("\x03")
    assert terminal.process.wait(LONG_ENOUGH_S) == 0
