"""At most so many of a thing in any time of a given length."""

from __future__ import annotations

from collections import deque


class RateLimit:
    """Allows ``count`` in each ``period_s`` seconds, wherever those begin."""

    def __init__(self, count: int, period_s: float) -> None:
        self._count = count
        self._period_s = period_s
        self._times: deque[float] = deque()

    def allows(self, now: float) -> bool:
        """Say whether there may be one more at ``now`` (seconds, never less than before); if so, it
        counts."""
        while self._times and self._times[0] <= now - self._period_s:
            self._times.popleft()
        if len(self._times) >= self._count:
            return False
        self._times.append(now)
        return True
