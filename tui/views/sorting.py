"""How a list is sorted and filtered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from msgspec import Struct

from locktop.collector.render.words.snapshot_index import SnapshotIndex

T = TypeVar("T")


class SortKey(Struct, Generic[T], frozen=True):
    """One way to sort: the row with the smallest ``key`` comes first."""

    name: str
    column: str  # title of the column with that figure
    key: Callable[[T], tuple[Any, ...]]
    #: In place of ``key``, where the order also depends on other rows.
    key_in: Callable[[SnapshotIndex, T], tuple[Any, ...]] | None = None

    def row_key(self, index: SnapshotIndex) -> Callable[[T], tuple[Any, ...]]:
        """The key for the rows of a snapshot."""
        return self.key if self.key_in is None else partial(self.key_in, index)


def most_first(figure: float | None) -> float:
    """The part of a sort key that puts large figures first; None is as 0."""
    return -figure if figure is not None else 0.0


def next_sort_key(sort_keys: Sequence[SortKey[Any]], name: str) -> str:
    """The name of the sort key after ``name``."""
    names = [order.name for order in sort_keys]
    return names[(names.index(name) + 1) % len(names)]


def sort_key_named(sort_keys: Sequence[SortKey[T]], name: str) -> SortKey[T]:
    """The sort key with that name."""
    return next(order for order in sort_keys if order.name == name)


def matches(text: str, wanted: str) -> bool:
    """Whether ``text`` has every word of ``wanted``; upper and lower case are alike."""
    text = text.casefold()
    return all(word in text for word in wanted.casefold().split())


class StableSorter:
    """Sorts a list at most once in ``every_s`` seconds, so that rows do not jump.

    In between, ids that are gone leave the list and new ids come last.
    """

    def __init__(self, every_s: float = 1.0) -> None:
        self._every_s = every_s
        self._sorted_at = float("-inf")
        self._ids: list[int] = []

    def is_due(self, now: float) -> bool:
        """Whether ``every_s`` seconds have passed at ``now``, seconds on a monotonic clock."""
        return now - self._sorted_at >= self._every_s

    def sort_now(self) -> None:
        """Sort at the next drawing."""
        self._sorted_at = float("-inf")

    def arrange(self, ids: Sequence[int], now: float, sort: Callable[[], list[int]]) -> list[int]:
        """``ids`` in order; ``sort`` returns them sorted, and is called only when that is due."""
        if self.is_due(now):
            self._sorted_at = now
            self._ids = sort()
            return self._ids
        present = set(ids)
        sorted_ids = set(self._ids)
        kept = [id_ for id_ in self._ids if id_ in present]
        fresh = [id_ for id_ in ids if id_ not in sorted_ids]
        if fresh or len(kept) != len(self._ids):
            self._ids = kept + fresh
        return self._ids
