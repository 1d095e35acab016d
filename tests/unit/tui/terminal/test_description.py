"""The description of a terminal tells some of its abilities."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_PRINT = (
    "from locktop.tui.terminal import description; known = description.described_abilities();"
    "print(known.erases, known.moves_rows, known.repeats or known.feeds,"
    " known.draws_lines)"
)


@pytest.mark.parametrize(
    ("name", "erases", "moves_rows"),
    [
        ("xterm-256color", True, True),
        ("linux", True, True),
        ("tmux-256color", True, True),
        ("screen", False, True),
        ("vt100", False, False),
        ("x-no", False, False),
    ],
)
def test_the_name_of_the_terminal_tells_what_it_can_do(
    name: str, erases: bool, moves_rows: bool
) -> None:
    assert printed({"TERM": name}) == f"{erases} {moves_rows} False False\n"


@pytest.mark.parametrize(
    ("environ", "draws_lines"),
    [
        ({"TERM": "tmux-256color"}, True),
        ({"TERM": "screen"}, True),
        ({"TERM": "screen.xterm-256color"}, True),
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "tmux-256color", "TMUX": "/tmp/tmux-0/default,1,0"}, False),
        ({"TERM": "screen", "STY": "1.pts-0.host"}, False),
        ({"TERM": "tmux-256color", "SSH_CONNECTION": ""}, False),
    ],
)
def test_lines_are_drawn_for_tmux_and_screen_at_the_other_end_of_ssh(
    environ: dict[str, str], draws_lines: bool
) -> None:
    known = printed({"SSH_CONNECTION": "192.0.2.1 1 192.0.2.2 22", **environ})
    assert known.split()[-1] == str(draws_lines)


def printed(environ: dict[str, str]) -> str:
    """Return the output of a new process. Python reads one description only."""
    kept = {k: v for k, v in os.environ.items() if k not in ("SSH_CONNECTION", "TMUX", "STY")}
    child = [sys.executable, "-c", _PRINT]
    done = subprocess.run(child, env=kept | environ, capture_output=True, text=True, timeout=60)
    assert not done.stderr
    return done.stdout
