"""Things that are alike as one row, which opens: what is open, and the order of what is in it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from locktop.tui.views.cells import fit
from locktop.tui.views.shorten import fit_middle, middle
from locktop.tui.views.sorting import StableSorter
from locktop.tui.views.styled_line import Line, make_line

#: So many of a fold have rows of their own, the worst.
MAX_INSIDE = 50

_MARKS = ("▸ ", "▾ ")  # closed, open
#: What stands before a row inside one.
INSIDE = "  "


@dataclass(frozen=True, slots=True)
class More:
    """What an open fold has beyond the rows that are shown."""

    count: int

    def line(self) -> Line:
        """The row that says so."""
        return make_line((f"   and {self.count} more", "dim"))


class RowGroups:
    """What is open and in which order, kept from one picture to the next; by a key for each."""

    def __init__(self) -> None:
        self._keys: list[Hashable] = []
        self._numbers: dict[Hashable, int] = {}
        self._opened: set[Hashable] = set()
        self._found: dict[Hashable, Sequence[int]] = {}  # what a filter found inside
        self._sorters: dict[Hashable, StableSorter] = {}

    def id_of(self, key: Hashable) -> int:
        """A number for a fold that stays its own, below those of things."""
        if key not in self._numbers:
            self._numbers[key] = len(self._keys)
            self._keys.append(key)
        return -2 - 2 * self._numbers[key]

    def id_of_more(self, key: Hashable) -> int:
        """The same for the row that says how many more there are."""
        return self.id_of(key) - 1

    def key_of(self, id_: int) -> Hashable | None:
        """The fold that has one of these two numbers, None if it is that of a thing."""
        number = -id_ // 2 - 1
        return self._keys[number] if 0 <= number < len(self._keys) else None

    def is_open(self, key: Hashable) -> bool:
        """Whether what is in it has rows."""
        return key in self._opened or key in self._found

    def set_open(self, key: Hashable, is_open: bool) -> None:
        """Open or close it."""
        (self._opened.add if is_open else self._opened.discard)(key)

    def begin(self, sort: bool) -> None:
        """Called before each picture; ``sort``: the order may change in it."""
        self._found.clear()
        if sort:
            self._sorters.clear()

    def open_for(self, key: Hashable, found: Sequence[int]) -> None:
        """Open it in this picture, for the ids that a filter found in it."""
        if found:
            self._found[key] = found

    def found(self, key: Hashable) -> Sequence[int]:
        """What a filter found in it, but did not find in its name."""
        return self._found.get(key, ())

    def arrange(
        self, key: Hashable, ids: Sequence[int], sort: Callable[[], list[int]]
    ) -> list[int]:
        """``ids`` in order: sorted again when all are."""
        order = self._sorters.setdefault(key, StableSorter(float("inf")))
        return order.arrange(ids, 0.0, sort)


def label(name: str, count: int, things: str, is_open: bool) -> str:
    """What a fold is called: ``▸ conn::mu  212 locks``."""
    return f"{_MARKS[is_open]}{name}  {count} {things}"


def fit_label(text: str, width: int, shorter: Callable[[str], str] = str) -> str:
    """A label, or the name of a thing, in exactly ``width`` cells; how many there are stays whole.
    ``shorter`` gives the part that counts of a name that is too long."""
    mark, name = (text[:2], text[2:]) if text[:2] in _MARKS else ("", text)
    if cell_len(text) > width:
        name = shorter(name)
    if not mark or cell_len(mark + name) <= width:
        return fit_middle(mark + name, width)
    name, _, counted = name.rpartition("  ")
    number = f" x{counted.partition(' ')[0]}"
    return fit(mark + middle(name, width - cell_len(mark + number)) + number, width)
