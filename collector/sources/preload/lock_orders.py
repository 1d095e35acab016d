"""The orders in which locks were taken, out of the shared memory, and what may come of them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from locktop.collector.analysis import lock_classes, lock_order_cycles
from locktop.collector.analysis.happens_before import ThreadLife
from locktop.collector.analysis.lock_order_cycles import (
    HeldLock,
    LockFacts,
    ObservedOrder,
    PotentialDeadlocks,
)
from locktop.collector.model import Lock
from locktop.collector.native import ffi, lib
from locktop.collector.shm import layout
from locktop.collector.shm.layout import LockRow
from locktop.collector.shm.segment import GrowingArray, SharedMemory
from locktop.collector.symbols.resolver import Resolver

#: A look rests for so many times what it took.
_REST = 20


class LockOrders:
    """Read anew when they changed, but for where that takes long: then less often."""

    def __init__(self, memory: SharedMemory, resolver: Resolver) -> None:
        self._memory = memory
        self._resolver = resolver
        self._orders_read = GrowingArray(memory, layout.ORDERS_AT, layout.ORDER_SIZE)
        self._lives_read = GrowingArray(memory, layout.LIVES_AT, layout.LIFE_SIZE)
        self._orders: tuple[ObservedOrder, ...] = ()
        self._lives: dict[int, ThreadLife] = {}
        self._changed = 0
        self._next_reading = self._next_search = 0.0  # not before
        self._known: tuple[object, PotentialDeadlocks] = (None, PotentialDeadlocks())
        #: Ids of the locks that a cycle may consist of.
        self.locks: frozenset[int] = frozenset()

    def refresh(self) -> None:
        """Read what changed since. Raises LocktopError for a damaged file."""
        raw = self._memory.read(layout.ORDERS_CHANGED_AT, 8)
        changed = int.from_bytes(raw, layout.BYTE_ORDER)
        begun = time.monotonic()
        if changed == self._changed or begun < self._next_reading:
            return
        self._changed = changed
        lives = [entry for entry in _read(self._lives_read, "lt_life") if entry.birth]
        self._lives = {entry.birth: _life(entry) for entry in lives}
        self._orders = tuple(
            _order(entry) for entry in _read(self._orders_read, "lt_order") if entry.hash
        )
        self.locks = lock_order_cycles.in_cycles(self._orders)
        self._next_reading = _rested(begun)

    def potential(
        self, locks: Sequence[Lock], rows: Mapping[int, LockRow], final: bool = False
    ) -> PotentialDeadlocks:
        """Return the potential deadlocks among ``locks``, of which ``rows`` says more: as of now,
        if ``final``, else perhaps as of some looks ago."""
        if not self._orders:
            return PotentialDeadlocks()
        known, found = self._known
        handed_over = tuple(lock.id for lock in locks if lock.foreign_releases)
        state = (self._changed, self._resolver.version, handed_over)
        begun = time.monotonic()
        if known != state and (final or begun >= self._next_search):
            found = lock_order_cycles.find(self._orders, self._lives, self._facts(locks, rows))
            self._known = (state, found)
            self._next_search = _rested(begun)
        return found

    def _facts(self, locks: Sequence[Lock], rows: Mapping[int, LockRow]) -> dict[int, LockFacts]:
        class_of = lock_classes.by_lock(lock_classes.find(locks))
        return {
            lock.id: LockFacts(
                has_own_address=self._has_own_address(rows[lock.id]),
                writers_first=lock.writers_first,
                handed_over=lock.foreign_releases,
                class_name=class_of[lock.id].name if lock.id in class_of else "",
            )
            for lock in locks
            if lock.id in rows
        }

    def _has_own_address(self, row: LockRow) -> bool:
        """A lock that a call initialised has a life that is known, and a file's data is not freed.
        Of others it is not known when their memory became another lock's."""
        return bool(row.made_at or row.generation) or self._resolver.is_of_a_file(row.address)


def _rested(begun: float) -> float:
    now = time.monotonic()
    return now + _REST * (now - begun)


def _read(array: GrowingArray, name: str) -> Iterable[Any]:
    array.refresh()
    array.copy()
    # Not of a memoryview: collecting a cycle with both would crash the interpreter (cffi 2.1).
    entries = ffi.from_buffer(f"struct {name}[]", array.data)
    return (entries[i] for i in range(array.count))


def _life(entry: Any) -> ThreadLife:
    return ThreadLife(
        tid=entry.tid,
        creator=entry.creator,
        created_in=entry.created_in,
        joiner=entry.joiner,
        joined_in=entry.joined_in,
    )


def _order(entry: Any) -> ObservedOrder:
    count = min(entry.held_count, lib.LT_ORDER_HELD)
    return ObservedOrder(
        epoch=entry.epoch,
        lock=entry.lock,
        generation=entry.life,
        shared=bool(entry.flags & lib.LT_ORDER_SHARED),
        is_truncated=bool(entry.flags & lib.LT_ORDER_CUT),
        stack=entry.stack,
        held=tuple(
            HeldLock(
                lock=entry.held[i],
                generation=entry.held_life[i],
                shared=bool(entry.flags >> i & 1),
                site=entry.site[i],
                is_identified=bool(entry.flags & lib.LT_ORDER_KNOWN << i),
            )
            for i in range(count)
        ),
        observed_in=tuple((at >> 32, at & 0xFFFFFFFF) for at in entry.seen if at),
        is_identified=bool(entry.flags & lib.LT_ORDER_KNOWN << lib.LT_ORDER_HELD),
    )
