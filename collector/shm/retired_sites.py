"""The call sites of the waits of ended threads: the library keeps a chain of them for each lock."""

from __future__ import annotations

from typing import NamedTuple

from locktop.collector.shm import layout
from locktop.collector.shm.layout import ChargeRecord, LockRow, SiteSum
from locktop.collector.shm.segment import SharedMemory

_MAX_SITES = 10_000


class PackedSites(NamedTuple):
    """The call sites of ended threads at one lock, packed."""

    sums: bytes  # struct lt_site_sum
    charges: bytes  # struct lt_charge


class RetiredSites:
    """Reads the chains, and keeps them while no thread ends."""

    def __init__(self, memory: SharedMemory) -> None:
        self._memory = memory
        #: by lock: its LockRow.sites, and what that chain has
        self._sites_by_lock: dict[int, tuple[int, PackedSites]] = {}
        self._retired_at = -1

    def begin(self, retire_seq: int) -> None:
        """Forget the chains if threads ended since. ``retire_seq``: see SharedMemory."""
        if retire_seq != self._retired_at or retire_seq & 1:
            self._sites_by_lock.clear()
            self._retired_at = retire_seq

    def sites(self, row: LockRow) -> PackedSites:
        """Return the call sites at a lock. Raises LocktopError for a damaged file."""
        entry = self._sites_by_lock.get(row.lock)
        if entry is None or entry[0] != row.sites:
            entry = self._sites_by_lock[row.lock] = (row.sites, self._walk(row))
        return entry[1]

    def _walk(self, row: LockRow) -> PackedSites:
        sums, charges, offset = [], [], row.sites
        for _ in range(_MAX_SITES):
            if not offset:
                break
            site = layout.RETIRED_SITE.unpack(self._memory.read(offset, layout.RETIRED_SITE.size))
            sums.append(
                layout.SITE_SUM.pack(
                    SiteSum(
                        lock=row.lock,
                        stack=site.stack,
                        living=0,
                        blame=min(site.blame, 1),
                        count=site.count,
                        wait_ticks=site.wait_ticks,
                        wait_max=0,
                    )
                )
            )
            if site.blame and site.count:
                charges.append(
                    layout.CHARGE.pack(
                        ChargeRecord(
                            lock=row.lock, stack=site.stack, holder=0, wait_ticks=site.wait_ticks
                        )
                    )
                )
            offset = site.next
        return PackedSites(sums=b"".join(sums), charges=b"".join(charges))
