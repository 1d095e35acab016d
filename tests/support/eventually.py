"""A wait for a state of another thread or process."""

from __future__ import annotations

import time
from collections.abc import Callable

#: Far longer than any state takes on a working machine.
PATIENCE_S = 60.0


def until(reached: Callable[[], bool], what: str) -> None:
    """Wait until ``reached`` returns true; ``what`` names the state in the error message."""
    deadline = time.monotonic() + PATIENCE_S
    while not reached():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.001)  # only the pause between two checks
