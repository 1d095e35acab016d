"""The distribution of a lock's wait time over its holders.

The library charges a holder at the release of the lock, with all time waited meanwhile (native
blame.h). The lock's entry holds the time waited for the present holder. The rest has no holder: the
lock was released and not acquired yet, or its holder is unknown. So the shares of a lock add up to
its wait time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from locktop.collector.native import lib
from locktop.collector.shm.layout import LockRow, SiteSum

#: Thread id. Return address of the call that took the lock, 0 unknown. Id of the lock that the
#: thread itself waited for meanwhile, 0 none.
Holder = tuple[int, int, int]

_BITS: int = lib.LT_WAITS_BITS
_COUNT = lib.LT_WAITS_NEW - 1
_SUM = (1 << (64 - _BITS)) - 1


def shares(
    waited: int,
    charged: Sequence[SiteSum],
    pending: int,
    holders: Sequence[Holder],
    addresses_of: Callable[[int], Sequence[int]],
) -> list[tuple[Holder, int]]:
    """Return the ticks that were waited for each holder, the most first.

    A tid of 0 stands for ended threads; with a site of 0 too, for no known holder.

    Args:
        waited: the ticks waited in all.
        charged: the charges of former holders.
        pending: ticks waited for the present holders, which share them.
        holders: the present holders.
        addresses_of: returns the addresses of a stack.
    """
    sums: dict[Holder, int] = {}
    for charge in charged:
        call_site, through, *_ = (*(addresses_of(charge.stack) if charge.stack else ()), 0, 0)
        holder = charge.holder, call_site, through
        sums[holder] = sums.get(holder, 0) + charge.wait_ticks
    known = sum(sums.values())
    if known > waited:  # the two figures were read one after the other
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
    """Return the ticks waited for the lock that no holder is charged with yet.

    Args:
        row: the lock, of which ``waits`` matters (struct lt_lock).
        now: the present, in ticks.
        shift: lt_header.wait_shift.
    """
    shift &= 63  # the file is not trusted
    began, count = row.waits >> _BITS, row.waits & _COUNT
    units = (count * (now >> shift) - began) & _SUM
    return units << shift if units <= _SUM >> 1 else 0
