"""The observed orders of locks, read from the shared memory, and their potential deadlocks."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from locktop.collector.analysis import lock_classes, lock_order_cycles, lock_order_graph
from locktop.collector.analysis.happens_before import ThreadLife
from locktop.collector.analysis.lock_order_cycles import (
    HeldLock,
    LockFacts,
    ObservedOrder,
    PotentialDeadlocks,
)
from locktop.collector.analysis.lock_order_graph import OrderLocks
from locktop.collector.model import Lock
from locktop.collector.native import ffi, lib
from locktop.collector.shm import layout
from locktop.collector.shm.layout import LockRow
from locktop.collector.shm.segment import GrowingArray, SharedMemory
from locktop.collector.symbols.resolver import Resolver

#: The pause after a search, as a multiple of the time that the search took.
REST = 20


class LockOrders:
    """The lock orders: read again when they changed, but less often if that takes long."""

    def __init__(self, memory: SharedMemory, resolver: Resolver, of_classes: bool = False) -> None:
        """``of_classes``: find potential deadlocks of lock classes too."""
        self._memory = memory
        self._resolver = resolver
        self._of_classes = of_classes
        self._orders_read = GrowingArray(memory, layout.ORDERS_AT, layout.ORDER_SIZE)
        self._lives_read = GrowingArray(memory, layout.LIVES_AT, layout.LIFE_SIZE)
        self._entries: Any = ()
        #: The locks of each order, by the order's index. The locks of an entry never change.
        self._orders: dict[int, OrderLocks] = {}
        #: Indexes of entries that a thread was making.
        self._unfinished: set[int] = set()
        self._in_cycles: list[OrderLocks] = []
        self._lives: dict[int, ThreadLife] = {}
        self._changed = 0
        self._next_reading = self._next_search = 0.0  # time.monotonic()
        self._last_search: tuple[object, PotentialDeadlocks] = (None, PotentialDeadlocks())
        #: The reading and the facts of the last search.
        self._searched_for: tuple[int, dict[int, LockFacts]] = (0, {})
        #: Ids of the locks that may be part of a cycle.
        self.locks: frozenset[int] = frozenset()

    def refresh(self) -> None:
        """Read the changed orders.

        Raises:
            LocktopError: the file is damaged.
        """
        raw = self._memory.read(layout.ORDERS_CHANGED_AT, 8)
        changed = int.from_bytes(raw, layout.BYTE_ORDER)
        begun = time.monotonic()
        if changed == self._changed or begun < self._next_reading:
            return
        self._changed = changed
        entries = _read(self._lives_read, "lt_life")
        lives = [entries[index] for index in range(self._lives_read.count)]
        self._lives = {entry.birth: _life(entry) for entry in lives if entry.birth}
        if self._read_locks():
            self._in_cycles = lock_order_graph.orders_in_cycles(self._orders.values())
            self.locks = frozenset(
                lock for order in self._in_cycles for lock, _ in (order.lock, *order.held)
            )
        self._next_reading = _next_search_time(begun)

    def _read_locks(self) -> bool:
        """Read the locks of the orders that are new, and return whether there are any."""
        known_count = len(self._orders) + len(self._unfinished)
        self._entries = _read(self._orders_read, "lt_order")
        new = {*self._unfinished, *range(known_count, self._orders_read.count)}
        self._unfinished = {index for index in new if not self._entries[index].hash}
        finished = sorted(new - self._unfinished)
        self._orders.update((index, _locks(index, self._entries[index])) for index in finished)
        return bool(finished)

    def potential(
        self, locks: Sequence[Lock], rows: Mapping[int, LockRow], final: bool = False
    ) -> PotentialDeadlocks:
        """Return the potential deadlocks among ``locks``.

        Args:
            locks: the locks of this scan.
            rows: the counters of the locks, by id.
            final: whether the result must be current; else it may come from an earlier scan.
        """
        if not self._orders:
            return PotentialDeadlocks()
        state_before, result = self._last_search
        handed_over = tuple(lock.id for lock in locks if lock.foreign_releases)
        state = (self._changed, self._resolver.version, handed_over)
        begun = time.monotonic()
        if state_before != state and (final or begun >= self._next_search):
            facts = self._facts(locks, rows)
            # Most names that are new name no lock.
            if (self._changed, facts) != self._searched_for:
                self._searched_for = (self._changed, facts)
                orders = self._searched_orders(facts)
                result = lock_order_cycles.find(orders, self._lives, facts, self._of_classes)
            self._last_search = (state, result)
            self._next_search = _next_search_time(begun)
        return result

    def _searched_orders(self, facts: Mapping[int, LockFacts]) -> list[ObservedOrder]:
        """Return the orders that may be part of a cycle of locks or of lock classes."""
        indexes = {order.index for order in self._in_cycles}
        names = {
            lock: lock_facts.class_name
            for lock, lock_facts in facts.items()
            if lock_facts.class_name
        }
        if names and self._of_classes:
            orders_of_locks = [order for order in self._orders.values() if order.lock[0] in facts]
            indexes.update(
                order.index for order in lock_order_graph.orders_in_cycles(orders_of_locks, names)
            )
        return [_order(self._entries[index]) for index in sorted(indexes)]

    def _facts(self, locks: Sequence[Lock], rows: Mapping[int, LockRow]) -> dict[int, LockFacts]:
        class_of = lock_classes.classes_by_lock(lock_classes.find(locks))
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
        """Return whether the life of the lock is known.

        A call that initialised the lock began its life, and the data of a file is never freed. For
        other locks it is unknown when another lock took over their memory.
        """
        return bool(row.made_at or row.generation) or self._resolver.is_of_a_file(row.address)


def _next_search_time(begun: float) -> float:
    now = time.monotonic()
    return now + REST * (now - begun)


def _read(array: GrowingArray, name: str) -> Any:
    """Return the entries of an array; those beyond its count have no meaning."""
    array.refresh()
    array.copy()
    # Not of a memoryview: collecting a cycle with both would crash the interpreter (cffi 2.1).
    return ffi.from_buffer(f"struct {name}[]", array.data)


def _locks(index: int, entry: Any) -> OrderLocks:
    count = min(entry.held_count, lib.LT_ORDER_HELD)
    return OrderLocks(
        index=index,
        epoch=entry.epoch,
        lock=(entry.lock, entry.life),
        held=tuple((entry.held[i], entry.held_life[i]) for i in range(count)),
    )


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
        observed_in=tuple((pair >> 32, pair & 0xFFFFFFFF) for pair in entry.seen if pair),
        is_identified=bool(entry.flags & lib.LT_ORDER_KNOWN << lib.LT_ORDER_HELD),
    )
