"""Gives the times of a sender's clock as times of the clock here."""

from __future__ import annotations

import time
from collections.abc import Callable

_NS = 1_000_000_000
#: Clocks that differ by less count as equal, so that the times stay those of the sender. This is
#: more than a frame takes on its way. A frame may be older than that: a slow sender repeats it.
_EQUAL_NS, _MAX_DELAY_NS = 5 * _NS, 30 * _NS


class StreamClock:
    """The clock of one sender, which may be wrong or forged. Times are nanoseconds since 1970."""

    def __init__(self, wall_ns: Callable[[], int] = time.time_ns) -> None:
        """``wall_ns``: the clock here."""
        self._wall_ns = wall_ns
        self._difference_ns: int | None = None

    def frame_ns(self, time_ns: int) -> int:
        """Return the time of a frame that has just arrived."""
        now_ns = self._wall_ns()
        if self._difference_ns is None or not (
            -_MAX_DELAY_NS <= time_ns + self._difference_ns - now_ns <= _EQUAL_NS
        ):
            differs_by_ns = now_ns - time_ns
            self._difference_ns = 0 if abs(differs_by_ns) <= _EQUAL_NS else differs_by_ns
        return time_ns + self._difference_ns

    def earlier_ns(self, time_ns: int) -> int:
        """Return a time that a frame names beside its own, which is not in the future."""
        return max(0, min(time_ns + (self._difference_ns or 0), self._wall_ns() + _EQUAL_NS))
