"""The happens-before order of threads, as far as creations and joins define it.

The life of a thread is divided into segments. A new segment begins when the thread creates or joins
another thread. Segments of two threads are ordered if one thread was created after, or joined
before, a segment of the other.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


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
        self._children: dict[int, list[tuple[int, int]]] = {}
        for serial, life in lives.items():
            self._children.setdefault(life.creator, []).append((life.created_in, serial))
        self._reached: dict[tuple[int, int], dict[int, int]] = {}

    def are_concurrent(self, one: tuple[int, int], other: tuple[int, int]) -> bool:
        """Return whether neither point comes before the other. Points of one thread never are
        concurrent."""
        return not self._is_before(one, other) and not self._is_before(other, one)

    def _is_before(self, one: tuple[int, int], other: tuple[int, int]) -> bool:
        reached = self._reached.get(one)
        if reached is None:
            reached = self._reached[one] = self._reach(one)
        serial, segment = other
        return serial in reached and reached[serial] <= segment

    def _reach(self, start: tuple[int, int]) -> dict[int, int]:
        """Return by thread the first segment that comes after ``start``."""
        reached: dict[int, int] = {}
        pending = [start]
        while pending:
            serial, segment = pending.pop()
            if reached.get(serial, segment + 1) <= segment:
                continue
            reached[serial] = segment
            pending += (
                (child, 0) for last, child in self._children.get(serial, ()) if last >= segment
            )
            life = self._lives.get(serial)
            if life is not None and life.joiner:
                pending.append((life.joiner, life.joined_in))
        return reached
