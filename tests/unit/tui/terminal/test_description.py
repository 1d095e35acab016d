"""The description of a terminal decides whether cells are erased."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_PRINT = "from locktop.tui.terminal import description; print(description.erases_in_colour())"


@pytest.mark.parametrize(
    ("name", "erases"),
    [
        ("xterm-256color", True),
        ("linux", True),
        ("screen", False),
        ("vt100", False),
        ("x-no", False),
    ],
)
def test_cells_are_erased_where_they_get_the_background(name: str, erases: bool) -> None:
    # One process for each: Python reads one description only.
    environ = os.environ | {"TERM": name}
    child = [sys.executable, "-c", _PRINT]
    done = subprocess.run(child, env=environ, capture_output=True, text=True, timeout=60)
    assert done.stdout == f"{erases}\n", done.stderr
