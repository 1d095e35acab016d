"""Whom a lock was waited for: what its holders are charged with, and what goes on now.

The library charges a holder when it gives the lock back, with all that was waited meanwhile
(native blame.h). What was waited for the present holder stands in the lock's entry. The rest is
nobody's: the lock had been given back and not been taken yet, or who held it is not known. So the
shares of a lock add up to what was waited for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from locktop.collector.native import lib
from locktop.collector.shm.layout import LockRow, SiteSum

#: tid, return address of the call that took the lock (0 unknown), id of the lock that the thread
#: waited for itself meanwhile (0: none)
Holder = tuple[int, int, int]

_BITS: int = lib.LT_WAITS_BITS
_COUNT = (1 << _BITS) - 1
_SUM = (1 << (64 - _BITS)) - 1


def shares(
    waited: int,
    charged: Sequence[SiteSum],
    pending: int,
    holders: Sequence[Holder],
    addresses_of: Callable[[int], Sequence[int]],
) -> list[tuple[Holder, int]]:
    """Return whom ``waited`` ticks were waited for, the most first.

    ``charged``: what holders are charged with; ``pending``: ticks waited for those who hold it now,
    which is shared among them; ``addresses_of`` gives the addresses of a stack. A tid of 0 is that
    of threads that ended; where the site is 0 too, nobody's.
    """
    sums: dict[Holder, int] = {}
    for site in charged:
        place, through, *_ = (*(addresses_of(site.stack) if site.stack else ()), 0, 0)
        holder = site.holder, place, through
        sums[holder] = sums.get(holder, 0) + site.wait_ticks
    known = sum(sums.values())
    if known > waited:  # the two were read one after the other
        sums = {holder: ticks * waited // known for holder, ticks in sums.items()}
        known = sum(sums.values())
    rest = waited - known
    if holders:
        each = min(rest, max(0, pending)) // len(holders)
        for holder in holders:
            sums[holder] = sums.get(holder, 0) + each
            rest -= each
    sums[0, 0, 0] = sums.get((0, 0, 0), 0) + rest
    found = [(holder, ticks) for holder, ticks in sums.items() if ticks]
    return sorted(found, key=lambda share: (-share[1], share[0]))


def pending(row: LockRow, now: int, shift: int) -> int:
    """Return what was waited for the lock by ``now`` (ticks) and is charged to nobody yet, in ticks
    (struct lt_lock, ``waits``). ``shift``: lt_header.wait_shift."""
    shift &= 63  # a stranger's word
    began, count = row.waits >> _BITS, row.waits & _COUNT
    units = (count * (now >> shift) - began) & _SUM
    return units << shift if units <= _SUM >> 1 else 0
