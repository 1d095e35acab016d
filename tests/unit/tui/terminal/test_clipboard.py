"""The sequence for the clipboard: plain, and in pieces that screen passes on."""

from __future__ import annotations

import base64
import os
import re

import pytest

from locktop.tui.terminal.clipboard import MAX_BYTES, note, set_clipboard

TEXT = "Zeile ä\n\x1b[2J end".encode()


@pytest.mark.parametrize("environ", [{}, {"TMUX": "/tmp/t,1,0"}, {"TMUX": "/t", "STY": "1.x"}])
def test_a_terminal_and_tmux_get_the_text_in_base64(environ: dict[str, str]) -> None:
    found = re.fullmatch(r"\x1b\]52;c;([A-Za-z0-9+/=]*)\x07", set_clipboard(TEXT, environ))
    assert found
    assert base64.b64decode(found[1]) == TEXT


@pytest.mark.parametrize("size", [1, 560, 600, MAX_BYTES])
def test_screen_gets_pieces_that_are_short_enough(size: int) -> None:
    data = os.urandom(size)
    pieces = re.findall(r"\x1bP(.*?)\x1b\\", set_clipboard(data, {"STY": "1.x"}), re.DOTALL)
    assert all(len(piece) <= 768 for piece in pieces)
    assert "".join(pieces) == set_clipboard(data, {})


def test_tmux_has_an_option_that_the_user_must_know() -> None:
    assert "set-clipboard" in note({"TMUX": "/tmp/t,1,0"})
    assert note({"STY": "1.x"}) == note({"TMUX": ""}) == ""
