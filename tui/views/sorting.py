"""Orders of a list, and what of it is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SortKey(Generic[T]):
    """One way to sort: ``key`` gives a tuple, the least comes first."""

    name: str
    column: str  # title of the column it shows in
    key: Callable[[T], tuple[Any, ...]]


def next_sort_key(sort_keys: Sequence[SortKey[Any]], name: str) -> str:
    """The name of the order after ``name``."""
    names = [order.name for order in sort_keys]
    return names[(names.index(name) + 1) % len(names)]


def sort_key_named(sort_keys: Sequence[SortKey[T]], name: str) -> SortKey[T]:
    """The order called ``name``."""
    return next(order for order in sort_keys if order.name == name)


def matches(text: str, wanted: str) -> bool:
    """Whether every word of ``wanted`` is somewhere in ``text``, in any case of letters."""
    text = text.casefold()
    return all(word in text for word in wanted.casefold().split())


class StableSorter:
    """Keeps a list in order without letting it jump: sorted again at most once in ``every_s``.

    In between, what is gone leaves and what is new comes last.
    """

    def __init__(self, every_s: float = 1.0) -> None:
        self._every_s = every_s
        self._sorted_at = float("-inf")
        self._ids: list[int] = []

    def is_due(self, now: float) -> bool:
        """Whether enough seconds have passed on the clock ``now`` was read from."""
        return now - self._sorted_at >= self._every_s

    def sort_now(self) -> None:
        """Sort again at the next chance: a key was pressed."""
        self._sorted_at = float("-inf")

    def arrange(self, ids: Sequence[int], now: float, sort: Callable[[], list[int]]) -> list[int]:
        """``ids`` in order; ``sort`` gives them sorted and is called only when that is due."""
        if self.is_due(now):
            self._sorted_at = now
            self._ids = sort()
            return self._ids
        present = set(ids)
        known = set(self._ids)
        kept = [id_ for id_ in self._ids if id_ in present]
        fresh = [id_ for id_ in ids if id_ not in known]
        if fresh or len(kept) != len(self._ids):
            self._ids = kept + fresh
        return self._ids
