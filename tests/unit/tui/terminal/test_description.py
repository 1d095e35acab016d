"""The description of a terminal tells some of its abilities."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_PRINT = (
    "from locktop.tui.terminal import description; known = description.described_abilities();"
    "print(known.erases, known.moves_rows, known.repeats or known.feeds)"
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
    # One process for each: Python reads one description only.
    environ = os.environ | {"TERM": name}
    child = [sys.executable, "-c", _PRINT]
    done = subprocess.run(child, env=environ, capture_output=True, text=True, timeout=60)
    assert done.stdout == f"{erases} {moves_rows} False\n", done.stderr
