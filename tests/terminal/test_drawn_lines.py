"""Lines of the character set for drawing: each cell is right, and the shell gets letters again."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from support.emulator import Emulator, Kind
from support.terminal import LONG_ENOUGH_S, Terminal, opened_terminal

DRAWING, ASCII = b"\x1b(0", b"\x1b(B"
PAINT_ALL = "\x0c"
NARROW = (80, 24)


@pytest.fixture
def drawing(request: pytest.FixtureRequest) -> Iterator[Terminal]:
    """A child that gives up its unread output soon, and draws lines on a terminal of this kind."""
    variables = {"TERM": "tmux-256color"}
    with opened_terminal(patience_s=0.3, kind=request.param, variables=variables) as terminal:
        yield terminal


def emulated(terminal: Terminal, output: bytes, size: tuple[int, int]) -> Emulator:
    emulator = Emulator(*size, terminal.kind)
    emulator.feed(output)
    return emulator


@pytest.mark.parametrize("drawing", [Kind.TMUX_3_3, Kind.SCREEN], indirect=True)
def test_drawn_lines_are_lines_after_a_new_size_too(drawing: Terminal) -> None:
    for key in ("z", "z", "?", "q"):
        drawing.press(key)
        drawing.frame("settle")
    drawing.resize(*NARROW)
    drawing.frame("tick 1")
    drawing.frame("settle")
    mark = drawing.received
    drawing.press(PAINT_ALL)
    while drawing.received == mark:
        drawing.frame("settle")
    whole = drawing.since(mark)
    assert DRAWING in whole
    emulator = emulated(drawing, whole, NARROW)
    assert "────" in emulator.text
    assert "qqq" not in emulator.text
    assert not emulator.draws
    all_output = emulated(drawing, drawing.since(0)[:mark], (120, 40))
    assert not all_output.draws


@pytest.mark.parametrize(
    ("drawing", "end"), [(Kind.TMUX_3_3, "SIGTERM"), (Kind.SCREEN, "hang")], indirect=["drawing"]
)
def test_an_end_in_the_midst_of_a_line_leaves_letters(end: str, drawing: Terminal) -> None:
    drawing.fill()
    mark = drawing.received
    if end == "hang":
        drawing.tell("stick")
    drawing.process.send_signal(signal.SIGTERM)
    assert drawing.process.wait(LONG_ENOUGH_S) == 128 + signal.SIGTERM
    drawing.go_on()
    drawing.wait_text("\x1b[?1049l", mark)
    last = drawing.since(mark)
    assert last.rindex(ASCII) < last.rindex(b"\x1b[?1049l")
    assert last.rfind(DRAWING) < last.rindex(ASCII)
    cut = Emulator(*NARROW, drawing.kind)
    cut.feed(DRAWING + b"q")
    cut.feed(last)
    assert not cut.draws
