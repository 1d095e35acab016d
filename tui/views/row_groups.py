"""Groups of rows: which groups are open, and the order of the rows in a group."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from msgspec import Struct
from rich.cells import cell_len

from locktop.tui.views.cells import fit
from locktop.tui.views.shorten import fit_middle, middle
from locktop.tui.views.sorting import StableSorter
from locktop.tui.views.styled_line import FOLD_MARKS, Line, make_line

#: An open group shows no more rows.
MAX_INSIDE = 50
#: The text before the name in a row of a group.
INSIDE = "  "


class More(Struct, frozen=True):
    """The number of rows that an open group does not show."""

    count: int

    def line(self) -> Line:
        """The row with that number."""
        return make_line((f"   and {self.count} more", "dim"))


class RowGroups:
    """Which groups are open, and their order, kept from one snapshot to the next. By key."""

    def __init__(self) -> None:
        self._keys: list[Hashable] = []
        self._numbers: dict[Hashable, int] = {}
        self._opened: set[Hashable] = set()
        self._matches: dict[Hashable, Sequence[int]] = {}  # ids that a filter found in the group
        self._sorters: dict[Hashable, StableSorter] = {}

    def id_of(self, key: Hashable) -> int:
        """The number of a group, which never changes, below the ids of single rows."""
        if key not in self._numbers:
            self._numbers[key] = len(self._keys)
            self._keys.append(key)
        return -2 - 2 * self._numbers[key]

    def id_of_more(self, key: Hashable) -> int:
        """The same for the row that says how many more rows the group has."""
        return self.id_of(key) - 1

    def key_of(self, id_: int) -> Hashable | None:
        """The key of the group with one of these two numbers, None for a single row."""
        number = -id_ // 2 - 1
        return self._keys[number] if 0 <= number < len(self._keys) else None

    def is_open(self, key: Hashable) -> bool:
        """Whether the group is open."""
        return key in self._opened or key in self._matches

    def set_open(self, key: Hashable, is_open: bool) -> None:
        """Open or close the group."""
        (self._opened.add if is_open else self._opened.discard)(key)

    def begin(self, sort: bool) -> None:
        """Begin a drawing; ``sort``: whether the order may change in it."""
        self._matches.clear()
        if sort:
            self._sorters.clear()

    def open_for(self, key: Hashable, ids: Sequence[int]) -> None:
        """Open the group in this drawing, for the ids that a filter found in it."""
        if ids:
            self._matches[key] = ids

    def filtered_ids(self, key: Hashable) -> Sequence[int]:
        """The ids that a filter found in the group, where its name does not match."""
        return self._matches.get(key, ())

    def arrange(
        self, key: Hashable, ids: Sequence[int], sort: Callable[[], list[int]]
    ) -> list[int]:
        """``ids`` in order; ``sort`` is called when the whole list is sorted."""
        order = self._sorters.setdefault(key, StableSorter(float("inf")))
        return order.arrange(ids, 0.0, sort)


def label(name: str, count: int, things: str, is_open: bool) -> str:
    """The name of a group: ``▸ conn::mu  212 locks``."""
    return f"{FOLD_MARKS[is_open]}{name}  {count} {things}"


def fit_label(text: str, width: int, shorter: Callable[[str], str] = str) -> str:
    """The name of a group or of a single row in exactly ``width`` cells.

    The number of rows stays whole. ``shorter`` shortens a name that is too long.
    """
    mark, name = (text[:2], text[2:]) if text[:2] in FOLD_MARKS else ("", text)
    if cell_len(text) > width:
        name = shorter(name)
    if not mark or "  " not in name or cell_len(mark + name) <= width:
        return fit_middle(mark + name, width)
    name, _, counted = name.rpartition("  ")
    number = f" x{counted.partition(' ')[0]}"
    return fit(mark + middle(name, width - cell_len(mark + number)) + number, width)
