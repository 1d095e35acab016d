"""The happens-before order of threads, as far as creations and joins define it.

The life of a thread is divided into segments. A new segment begins when the thread creates or joins
another thread. Segments of two threads are ordered if one thread was created after, or joined
before, a segment of the other.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

from msgspec import Struct

#: How many creations and joins the comparisons of one ``HappensBefore`` may visit. Without a limit,
#: 40,000 points of a thread that created 20,000 others took minutes.
MAX_STEPS = 1_000_000


class ThreadLife(Struct, frozen=True):
    """The beginning and the end of a thread. Serial numbers name threads, 0 is unknown."""

    tid: int
    creator: int
    created_in: int  # the segment of the creator that ended with the creation
    joiner: int
    joined_in: int  # the segment of the joiner that began with the join


class HappensBefore:
    """Compares points in the lives of threads: pairs of a serial number and a segment."""

    def __init__(self, lives: Mapping[int, ThreadLife]) -> None:
        """``lives``: by serial number."""
        self._lives = lives
        self._children: dict[int, list[tuple[int, int]]] = {}  # by segment
        for serial, life in lives.items():
            self._children.setdefault(life.creator, []).append((life.created_in, serial))
        for children in self._children.values():
            children.sort()
        self._reached: dict[tuple[int, int], dict[int, int]] = {}
        self._steps_left = MAX_STEPS

    @property
    def is_exhausted(self) -> bool:
        """Whether the steps are used up, so that two points may be wrongly called ordered."""
        return self._steps_left <= 0

    def are_concurrent(self, point: tuple[int, int], other: tuple[int, int]) -> bool:
        """Return whether neither point comes before the other. Points of one thread never are
        concurrent, nor are points that the steps do not suffice to compare."""
        if self._is_before(point, other) or self._is_before(other, point):
            return False
        return not self.is_exhausted

    def _is_before(self, point: tuple[int, int], other: tuple[int, int]) -> bool:
        reached = self._reached.get(point)
        if reached is None:
            if self.is_exhausted:
                return True
            reached = self._reached[point] = self._reach(point)
        serial, segment = other
        return serial in reached and reached[serial] <= segment

    def _reach(self, start: tuple[int, int]) -> dict[int, int]:
        """Return by thread the first segment that comes after ``start``."""
        reached: dict[int, int] = {}
        pending = [start]
        while pending and not self.is_exhausted:
            serial, segment = pending.pop()
            if reached.get(serial, segment + 1) <= segment:
                continue
            reached[serial] = segment
            children = self._children.get(serial, [])
            later = children[bisect_left(children, (segment, 0)) :]
            pending += [(child, 0) for _, child in later]
            self._steps_left -= 1 + len(later)
            life = self._lives.get(serial)
            if life is not None and life.joiner:
                pending.append((life.joiner, life.joined_in))
        return reached
