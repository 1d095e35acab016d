"""Which piece of code lies at an address, where code comes, goes and moves."""

from __future__ import annotations

from array import array
from bisect import bisect_right

_ORDER_BITS = 32
_LAST_ORDER = (1 << _ORDER_BITS) - 1
#: Pieces that begin before the address and are looked at: where code moved, they overlap.
_SCANNED_AT = 64


class CodeIndex:
    """Pieces of code by address; of those that overlap the one that was added last is there.

    Some 60 bytes each: a program that compiles for days has millions.
    """

    def __init__(self) -> None:
        self._keys: list[int] = []  # start and order in one, sorted when asked
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
        """Return the payload of the code at the address."""
        if not self._is_sorted:
            self._keys.sort()
            self._is_sorted = True
        at = bisect_right(self._keys, address << _ORDER_BITS | _LAST_ORDER)
        newest = -1
        for key in self._keys[max(0, at - _SCANNED_AT) : at]:
            order = key & _LAST_ORDER
            if order > newest and address < (key >> _ORDER_BITS) + self._sizes[order]:
                newest = order
        return self._payloads[newest] if newest >= 0 else None
