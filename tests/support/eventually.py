"""A wait for a state of another thread or process."""

from __future__ import annotations

import time
from collections.abc import Callable

#: A guard against states that never come. Beside twenty busy processes a state that takes seconds
#: may take minutes.
PATIENCE_S = 300.0


def until(reached: Callable[[], bool], what: str) -> None:
    """Wait until ``reached`` returns true; ``what`` names the state in the error message."""
    deadline = time.monotonic() + PATIENCE_S
    while not reached():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.001)  # only the pause between two checks
