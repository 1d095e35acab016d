"""Maps the library's numbers of lock kinds (enum lt_kind) to the model's kinds."""

from __future__ import annotations

from collections.abc import Set

from locktop.collector.model import CONTENTION_KINDS, Kind
from locktop.collector.native import lib

#: The names are those of the model: a kind that the library does not have fails here.
KINDS: dict[int, Kind] = {getattr(lib, f"LT_KIND_{kind.name}"): kind for kind in Kind}
#: The kind by number, for arrays of LT_KINDS elements.
BY_NUMBER = tuple(KINDS.get(number, Kind.CUSTOM) for number in range(lib.LT_KINDS))


def numbers_of(kinds: Set[Kind]) -> frozenset[int]:
    """Return the library's numbers of some kinds."""
    return frozenset(number for number, kind in KINDS.items() if kind in kinds)


#: The numbers of the kinds whose waits are contention.
CONTENDING = tuple(sorted(numbers_of(CONTENTION_KINDS)))
KIND_SHIFT: int = lib.LT_KIND_SHIFT

#: The bit that a record of the ring adds to the kind if a reader took the lock.
SHARED: int = lib.LT_KIND_SHARED


def kind_of(key: int) -> Kind | None:
    """Return the kind in the key of a lock; None for a number without a kind."""
    return KINDS.get(key >> KIND_SHIFT)
