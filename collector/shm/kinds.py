"""Maps the library's numbers of lock kinds (enum lt_kind) to the model's kinds."""

from __future__ import annotations

from locktop.collector.model import CONTENTION_KINDS, Kind
from locktop.collector.native import lib

KINDS: dict[int, Kind] = {
    lib.LT_KIND_MUTEX: Kind.MUTEX,
    lib.LT_KIND_RWLOCK: Kind.RWLOCK,
    lib.LT_KIND_SPIN: Kind.SPIN,
    lib.LT_KIND_SEM: Kind.SEM,
    lib.LT_KIND_COND: Kind.COND,
    lib.LT_KIND_BARRIER: Kind.BARRIER,
    lib.LT_KIND_JOIN: Kind.JOIN,
    lib.LT_KIND_ONCE: Kind.ONCE,
    lib.LT_KIND_FUTEX: Kind.FUTEX,
    lib.LT_KIND_CUSTOM: Kind.CUSTOM,
}
#: The kind by number, for arrays of LT_KINDS elements.
BY_NUMBER = tuple(KINDS.get(number, Kind.CUSTOM) for number in range(lib.LT_KINDS))
#: The numbers of the kinds whose waits are contention.
CONTENDING = tuple(number for number, kind in KINDS.items() if kind in CONTENTION_KINDS)
KIND_SHIFT: int = lib.LT_KIND_SHIFT

#: The bit that a record of the ring adds to the kind if a reader took the lock.
SHARED: int = lib.LT_KIND_SHARED


def kind_of(key: int) -> Kind | None:
    """Return the kind in the key of a lock; None for a number without a kind."""
    return KINDS.get(key >> KIND_SHIFT)
