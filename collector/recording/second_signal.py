"""Tells the second signal of an impatient user from one signal that arrives twice."""

from __future__ import annotations

import time
from collections.abc import Callable

#: timeout(1) sends its signal to the process, and at once to the process group. Seconds.
AT_ONCE_S = 0.5


class SecondSignal:
    """Call ``arrives`` in the signal handler."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """``now``: a monotonic clock in seconds."""
        self._now = now
        self._first_at: float | None = None

    def arrives(self) -> bool:
        """Note a signal; return whether the first one came clearly before it."""
        now = self._now()
        if self._first_at is None:
            self._first_at = now
        return now - self._first_at > AT_ONCE_S
