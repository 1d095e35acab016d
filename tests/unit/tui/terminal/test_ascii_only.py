"""Text for a terminal without UTF-8."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from locktop.tui.terminal.ascii_only import shows_utf8, to_ascii
from locktop.tui.terminal.driver import is_multiplexed


@pytest.mark.parametrize(
    ("environ", "is_utf8"),
    [
        ({}, False),
        ({"LANG": "C"}, False),
        ({"LANG": "de_DE"}, False),
        ({"LANG": "de_DE.ISO-8859-1"}, False),
        ({"LANG": "C.UTF-8"}, True),
        ({"LANG": "en_US.utf8"}, True),
        ({"LANG": "ca_ES.UTF-8@valencia"}, True),
        ({"LC_CTYPE": "UTF-8", "LANG": "C"}, True),
        ({"LC_ALL": "C", "LANG": "en_US.UTF-8"}, False),
        ({"LC_ALL": "", "LANG": "en_US.UTF-8"}, True),
    ],
)
def test_the_locale_says_whether_the_terminal_shows_utf8(
    environ: dict[str, str], is_utf8: bool
) -> None:
    assert shows_utf8(environ) == is_utf8


@pytest.mark.parametrize(
    "text", ["━▒█▚·-", "▸ conn::mu…", "▶ Locks ───", "┌▶ █▇▆▅▄▃▂▁", "日本 é 🔒"]
)
def test_each_character_has_as_many_cells_in_ascii(text: str) -> None:
    plain = to_ascii(text)
    assert plain.isascii()
    assert cell_len(plain) == cell_len(text)


@pytest.mark.parametrize("scale", ["━▒█▚·-", " ·░▒▓█", "▁▂▃▄▅▆▇█·═~─-"])
def test_what_differs_in_one_view_differs_in_ascii_too(scale: str) -> None:
    assert len(set(to_ascii(scale))) == len(scale)


def test_control_sequences_stay() -> None:
    assert to_ascii("\x1b[1;31mab\x1b[0m\r\n") == "\x1b[1;31mab\x1b[0m\r\n"


@pytest.mark.parametrize(
    ("environ", "is_multiplexer"),
    [
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "xterm-256color", "TMUX": "/tmp/tmux-0/default,1,0"}, True),
        ({"TERM": "screen-256color"}, True),  # over SSH from a machine with tmux
        ({"TERM": "tmux-256color"}, True),
        ({"TERM": "linux", "STY": "1.pts"}, True),
    ],
)
def test_tmux_and_screen_are_known_by_their_variables(
    environ: dict[str, str], is_multiplexer: bool
) -> None:
    assert is_multiplexed(environ) == is_multiplexer
