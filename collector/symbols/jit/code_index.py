"""The piece of code at an address, for code that is added, replaced and moved."""

from __future__ import annotations

from array import array
from bisect import bisect_right

_ORDER_BITS = 32
_LAST_ORDER = (1 << _ORDER_BITS) - 1
#: Pieces before an address that are checked: pieces of moved code overlap.
_CHECKED = 64


class CodeIndex:
    """Pieces of code by address. Of overlapping pieces the one that was added last is valid.

    A piece takes some 60 bytes: a program that compiles for days has millions.
    """

    def __init__(self) -> None:
        self._keys: list[int] = []  # start and order in one number, sorted by find()
        self._sizes = array("Q")
        self._payloads = array("Q")
        self._is_sorted = True

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, start: int, size: int, payload: int) -> None:
        """Add ``size`` bytes of code at ``start``, all below 2**64."""
        self._keys.append(start << _ORDER_BITS | len(self._keys))
        self._sizes.append(size)
        self._payloads.append(payload)
        self._is_sorted = False

    def find(self, address: int) -> int | None:
        """Return the payload of the code at an address; None if there is none."""
        if not self._is_sorted:
            self._keys.sort()
            self._is_sorted = True
        behind = bisect_right(self._keys, address << _ORDER_BITS | _LAST_ORDER)
        newest = -1
        for key in self._keys[max(0, behind - _CHECKED) : behind]:
            order = key & _LAST_ORDER
            if order > newest and address < (key >> _ORDER_BITS) + self._sizes[order]:
                newest = order
        return self._payloads[newest] if newest >= 0 else None
