"""Classes of locks as rows: which are open, and the order of the locks in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from locktop.collector.analysis.lock_classes import LockClass
from locktop.collector.model import Kind, Lock
from locktop.tui.lines.order import Ordering
from locktop.tui.lines.picture import Picture
from locktop.tui.lines.runs import Line, say

#: So many locks of a class have rows of their own, the worst.
MOST_INSIDE = 50

_Key = tuple[Kind, str]


@dataclass(frozen=True, slots=True)
class More:
    """The locks of an open class that have no rows of their own."""

    count: int

    def line(self) -> Line:
        """The row that says so."""
        return say((f"   and {self.count} more", "dim"))


class Classes:
    """What is open and in which order, kept from one picture to the next."""

    def __init__(self) -> None:
        self._keys: list[_Key] = []
        self._numbers: dict[_Key, int] = {}
        self._opened: set[_Key] = set()
        self._found: dict[_Key, Sequence[Lock]] = {}  # what a filter found inside
        self._orders: dict[_Key, Ordering] = {}

    def id_of(self, of: LockClass) -> int:
        """A number for a class that stays its own, below those of locks."""
        key = (of.kind, of.name)
        if key not in self._numbers:
            self._numbers[key] = len(self._keys)
            self._keys.append(key)
        return -2 - 2 * self._numbers[key]

    def id_of_more(self, of: LockClass) -> int:
        """The same for the row that says how many more there are."""
        return self.id_of(of) - 1

    def find(self, picture: Picture, id_: int) -> LockClass | None:
        """The class that has one of these two numbers, None if there is none any more."""
        number = -id_ // 2 - 1
        return picture.classes.get(self._keys[number]) if 0 <= number < len(self._keys) else None

    def is_open(self, of: LockClass) -> bool:
        """Whether its locks have rows."""
        key = (of.kind, of.name)
        return key in self._opened or key in self._found

    def set_open(self, of: LockClass, is_open: bool) -> None:
        """Open or close it."""
        (self._opened.add if is_open else self._opened.discard)((of.kind, of.name))

    def begin(self, sort: bool) -> None:
        """Called before each picture; ``sort``: the order may change in it."""
        self._found.clear()
        if sort:
            self._orders.clear()

    def open_for(self, of: LockClass, found: Sequence[Lock]) -> None:
        """Open it in this picture, for the locks that a filter found in it."""
        if found:
            self._found[of.kind, of.name] = found

    def found(self, of: LockClass) -> Sequence[Lock]:
        """What a filter found in it, but did not find in its name."""
        return self._found.get((of.kind, of.name), ())

    def arrange(
        self, of: LockClass, ids: Sequence[int], sort: Callable[[], list[int]]
    ) -> list[int]:
        """``ids`` in order: sorted again when all are."""
        order = self._orders.setdefault((of.kind, of.name), Ordering(float("inf")))
        return order.arrange(ids, 0.0, sort)
