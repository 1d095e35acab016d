"""A limit on the number of events in any period of a given length."""

from __future__ import annotations

from collections import deque


class RateLimit:
    """Allows ``count`` events in any ``period_s`` seconds."""

    def __init__(self, count: int, period_s: float) -> None:
        self._count = count
        self._period_s = period_s
        self._times: deque[float] = deque()

    def has_room(self, now: float) -> bool:
        """Return whether an event is allowed at ``now`` (seconds, never less than before)."""
        while self._times and self._times[0] <= now - self._period_s:
            self._times.popleft()
        return len(self._times) < self._count

    def allows(self, now: float) -> bool:
        """Return whether an event is allowed at ``now``, and count an allowed event."""
        if not self.has_room(now):
            return False
        self._times.append(now)
        return True
