"""Waits that are charged to holders, as the reader passes them on."""

from __future__ import annotations

from collections.abc import Sequence

from locktop.collector.shm import layout
from locktop.collector.shm.layout import ChargeRecord, SiteSum
from locktop.collector.shm.table_sums import LockCharges

#: A holder, its stack and the ticks.
Charge = tuple[int, int, int]


def charged(charges: Sequence[Charge]) -> LockCharges:
    """Return the charges of one lock. A holder of 0 stands for threads that ended."""
    sums: dict[tuple[int, int], int] = {}
    for holder, stack, ticks in charges:
        key = stack, int(holder > 0)
        sums[key] = sums.get(key, 0) + ticks
    records = [
        ChargeRecord(lock=1, stack=stack, holder=holder, wait_ticks=ticks)
        for holder, stack, ticks in charges
    ]
    return LockCharges(
        packed=b"".join(map(layout.CHARGE.pack, records)),
        by_stack=[
            SiteSum(
                lock=1, stack=stack, living=living, blame=1, count=1, wait_ticks=ticks, wait_max=0
            )
            for (stack, living), ticks in sums.items()
        ],
    )
