"""The distribution of a lock's wait time over its holders.

The library charges a holder at the release of the lock, with all time waited meanwhile (native
blame.h). The lock's entry holds the time waited for the present holder. The rest has no holder: the
lock was released and not acquired yet, or its holder is unknown. So the shares of a lock add up to
its wait time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from typing import overload

from msgspec import Struct
from msgspec.structs import replace

from locktop.collector.model import Blame, LazyBlame, PackedBlame
from locktop.collector.native import ffi, lib
from locktop.collector.shm import layout
from locktop.collector.shm.layout import ChargeRecord, LockRow
from locktop.collector.shm.table_sums import LockCharges

#: Thread id. Return address of the call that took the lock, 0 unknown. Id of the lock that the
#: thread itself waited for meanwhile, 0 none.
Holder = tuple[int, int, int]
#: The last two of a Holder.
Origin = tuple[int, int]

_BITS: int = lib.LT_WAITS_BITS
_COUNT = lib.LT_WAITS_NEW - 1
_SUM = (1 << (64 - _BITS)) - 1
_NO_CHARGES = LockCharges(packed=b"", by_stack=[])
_NO_HOLDER: Holder = (0, 0, 0)
_MAX_TICKS = (1 << 64) - 1
#: Numbers of stacks from here downwards are in no file (stack_table.py).
_LAST_STACK = (1 << 32) - 1
_FIRST_ROWS = 4096


class LockShares(Struct, frozen=True, gc=False):
    """The ticks that were waited for each holder of one lock, not yet added up.

    A tid of 0 stands for ended threads; with a site of 0 too, for no known holder.
    """

    waited: int  # ticks, all shares together
    #: Ticks of ``charges``; if these are more than ``waited``, each is scaled down.
    charged_ticks: int
    charges: bytes  # struct lt_charge: the charges of former holders
    origins: tuple[tuple[int, Origin], ...]  # of each stack of ``charges``
    others: tuple[tuple[Holder, int], ...]  # the present holders, and the rest
    unheld: int  # ticks that are charged to no known holder


def shares(
    waited: int,
    charged: LockCharges | None,
    pending: int,
    holders: Sequence[Holder],
    addresses_of: Callable[[int], Sequence[int]],
) -> LockShares:
    """Distribute the wait time of one lock.

    Args:
        waited: the ticks waited in all.
        charged: the charges of former holders.
        pending: ticks waited for the present holders, which share them.
        holders: the present holders.
        addresses_of: returns the addresses of a stack.
    """
    charged = charged or _NO_CHARGES
    origins = {site.stack: _origin(site.stack, addresses_of) for site in charged.by_stack}
    charged_ticks = sum([site.wait_ticks for site in charged.by_stack])
    lock_shares = LockShares(
        waited=min(waited, _MAX_TICKS),  # the file is not trusted
        charged_ticks=min(charged_ticks, _MAX_TICKS),
        charges=charged.packed,
        origins=tuple(origins.items()),
        others=(),
        unheld=0,
    )
    # The two figures were read one after the other.
    used = (
        charged_ticks
        if charged_ticks <= waited
        else int(lib.lt_charged_ticks(_CLocks([lock_shares]).array))
    )
    rest = max(0, waited - used)
    others: list[tuple[Holder, int]] = []
    if holders:
        each = min(rest, max(0, pending)) // len(holders)
        others = [(holder, each) for holder in holders]
        rest -= each * len(holders)
    ended = [
        site.wait_ticks for site in charged.by_stack if not (site.living or origins[site.stack][0])
    ]
    unheld = sum(
        [ticks * waited // charged_ticks if charged_ticks > waited else ticks for ticks in ended]
    )
    return replace(lock_shares, others=(*others, (_NO_HOLDER, rest)), unheld=rest + unheld)


class ChargedBlame(LazyBlame):
    """The blame of one lock or of several locks together."""

    __slots__ = ("_hz", "_locks", "_origins", "_rows")

    def __init__(self, locks: Sequence[LockShares], hz: float) -> None:
        """``hz``: ticks of a second."""
        self._locks = tuple(locks)
        self._hz = hz
        self._origins: list[Origin] = []
        self._rows: bytes | None = None  # struct lt_charge; ``stack`` is an index of ``_origins``

    @property
    def sites(self) -> Set[int]:
        of_others = {site for lock in self._locks for (_, site, _), ticks in lock.others if ticks}
        return of_others.union(site for lock in self._locks for _, (site, _) in lock.origins)

    @property
    def further_locks(self) -> Set[int]:
        of_others = {lock_ for lock in self._locks for (_, _, lock_), ticks in lock.others if ticks}
        return of_others.union(lock_ for lock in self._locks for _, (_, lock_) in lock.origins)

    @property
    def unheld_s(self) -> float:
        return sum([lock.unheld for lock in self._locks]) / self._hz

    @property
    def behind_s(self) -> float:
        return sum([lock.waited - lock.unheld for lock in self._locks]) / self._hz

    def sum_with(self, others: Iterable[LazyBlame]) -> ChargedBlame:
        """See LazyBlame. ``others`` are from the same source."""
        locks = [
            lock for other in others if isinstance(other, ChargedBlame) for lock in other._locks
        ]
        return ChargedBlame((*self._locks, *locks), self._hz)

    def packed(self) -> PackedBlame:
        rows = self._sorted_rows()
        return PackedBlame(
            origins=tuple(self._origins), rows=rows, hz=self._hz,
            unheld_s=self.unheld_s, behind_s=self.behind_s,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self._sorted_rows()) // layout.CHARGE.size

    @overload
    def __getitem__(self, index: int) -> Blame: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Blame]: ...

    def __getitem__(self, index: int | slice) -> Blame | Sequence[Blame]:
        rows, size = self._sorted_rows(), layout.CHARGE.size
        if isinstance(index, slice):
            return tuple([self[i] for i in range(*index.indices(len(self)))])
        row = range(len(self))[index]
        return self._blame(layout.CHARGE.unpack(rows, row * size))

    def __iter__(self) -> Iterator[Blame]:
        rows, origins, hz = self._sorted_rows(), self._origins, self._hz
        for _, origin, tid, ticks in layout.CHARGE.tuples(rows):
            site, through = origins[origin]
            yield Blame(tid=tid, site=site, wait_s=ticks / hz, through=through)

    def _blame(self, row: ChargeRecord) -> Blame:
        site, through = self._origins[row.stack]
        return Blame(tid=row.holder, site=site, wait_s=row.wait_ticks / self._hz, through=through)

    def _sorted_rows(self) -> bytes:
        if self._rows is None:
            self._origins, self._rows = _sum(self._locks)
        return self._rows


def _sum(locks: Sequence[LockShares]) -> tuple[list[Origin], bytes]:
    """Return the origins in their order, and the sums of the shares by holder and origin."""
    by_stack = {stack: origin for lock in locks for stack, origin in lock.origins}
    others = [other for lock in locks for other in lock.others]
    origins = sorted({*by_stack.values(), *((site, through) for (_, site, through), _ in others)})
    numbers = {origin: number for number, origin in enumerate(origins)}
    by_number = {_LAST_STACK - number: origin for origin, number in numbers.items()}
    charges = [
        ChargeRecord(
            lock=0,
            stack=_LAST_STACK - numbers[site, through],
            holder=tid,
            wait_ticks=min(ticks, _MAX_TICKS),
        )
        for (tid, site, through), ticks in others
    ]
    packed = b"".join(map(layout.CHARGE.pack, charges))
    rest = LockShares(waited=0, charged_ticks=0, charges=packed, origins=(), others=(), unheld=0)
    stacks = sorted({**by_stack, **by_number}.items())
    return origins, _CLocks([*locks, rest]).rows(
        [stack for stack, _ in stacks], [numbers[origin] for _, origin in stacks]
    )


class _CLocks:
    """Locks as struct lt_charged_lock."""

    def __init__(self, locks: Sequence[LockShares]) -> None:
        self.array = ffi.new("struct lt_charged_lock[]", len(locks))
        self._charges = [ffi.from_buffer("struct lt_charge[]", lock.charges) for lock in locks]
        for to, lock, charges in zip(self.array, locks, self._charges, strict=True):
            to.charges, to.count = charges, len(charges)
            to.waited, to.charged = lock.waited, lock.charged_ticks

    def rows(self, stacks: Sequence[int], origins: Sequence[int]) -> bytes:
        """Return the rows of lt_sum_charges()."""
        capacity, count = _FIRST_ROWS // 4, sys.maxsize
        c_stacks, c_origins = ffi.new("uint32_t[]", stacks), ffi.new("uint32_t[]", origins)
        while count > capacity:
            capacity *= 4
            rows = ffi.new("struct lt_charge[]", capacity)
            count = int(
                lib.lt_sum_charges(
                    self.array, len(self.array), c_stacks, c_origins, len(stacks), rows, capacity
                )
            )
        return bytes(ffi.buffer(rows, count * layout.CHARGE.size))


def _origin(stack: int, addresses_of: Callable[[int], Sequence[int]]) -> Origin:
    site, through, *_ = (*(addresses_of(stack) if stack else ()), 0, 0)
    return site, through


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
