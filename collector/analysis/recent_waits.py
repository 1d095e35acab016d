"""The waiting in contention of the last minute, by locks and by threads, in parts of five seconds.

The parts begin at multiples of five seconds of a monotonic clock. So a part that is over keeps its
figure, and an unchanged row of the screen sends nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

#: Parts of the last minute, and the seconds of each. The last part is not over.
PARTS = 12
PART_S = 5.0


class RecentWaits:
    """Adds up waits by an id, and forgets what is older than a minute."""

    def __init__(self) -> None:
        self._parts: dict[int, list[float]] = {}  # by id: seconds waited, the oldest part first
        self._last_part: int | None = None  # number of the last part of each list
        self._until_s = 0.0  # the end of the last interval

    def add(self, now_s: float, interval_s: float, waits: Iterable[tuple[int, float]]) -> None:
        """Add the waits of one interval.

        Args:
            now_s: the end of the interval, seconds on a monotonic clock.
            interval_s: the length of the interval; 0: the waits are not known.
            waits: an id, and the seconds waited in the interval by all threads together.
        """
        self._advance(int(now_s // PART_S))
        shares = _shares(max(now_s - interval_s, 0.0), now_s)
        for id_, waited_s in waits:
            if waited_s <= 0.0:
                continue
            parts = self._parts.get(id_)
            if parts is None:
                parts = self._parts[id_] = [0.0] * PARTS
            for back, share in shares:
                parts[-1 - back] += waited_s * share

    def snapshot(self) -> Mapping[int, tuple[float, ...]]:
        """Return the seconds waited in each part by id, without ids that nobody waited for."""
        return {id_: tuple(parts) for id_, parts in self._parts.items()}

    def _advance(self, part: int) -> None:
        if self._last_part is None or part <= self._last_part:
            self._last_part = part if self._last_part is None else self._last_part
            return
        steps = min(part - self._last_part, PARTS)
        self._last_part = part
        for id_, parts in list(self._parts.items()):
            moved = parts[steps:] + [0.0] * steps
            if any(moved):
                self._parts[id_] = moved
            else:
                del self._parts[id_]


def _shares(from_s: float, to_s: float) -> list[tuple[int, float]]:
    """Return how many parts before the last one a part of the interval lies, and its share."""
    if to_s <= from_s:
        return []
    last, shares = int(to_s // PART_S), []
    for back in range(PARTS):
        begin = (last - back) * PART_S
        overlap = min(to_s, begin + PART_S) - max(from_s, begin)
        if overlap > 0.0:  # the last part may have just begun
            shares.append((back, overlap / (to_s - from_s)))
    return shares
