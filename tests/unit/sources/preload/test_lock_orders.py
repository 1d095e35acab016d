"""Lock orders in the file, and the potential deadlocks among them."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from support.shared_file import SharedFile
from unit.builders import records
from unit.builders.raw_threads import lock_row

from locktop.collector.analysis.lock_order_cycles import PotentialDeadlocks
from locktop.collector.model import Lock
from locktop.collector.native import lib
from locktop.collector.shm.layout import LockRow
from locktop.collector.shm.segment import SharedMemory
from locktop.collector.sources.preload.lock_orders import LockOrders
from locktop.collector.symbols.resolver import Resolver

A, B, C = 1, 2, 3
ALL_KNOWN = lib.LT_ORDER_KNOWN * 0x1FF


class Files(Resolver):
    """Which addresses lie in the data of a file."""

    def __init__(self) -> None:
        self.of_files = True
        self.changes = 0

    @property
    def version(self) -> int:
        return self.changes

    def is_of_a_file(self, address: int) -> bool:
        return self.of_files


class Orders:
    """A file with lock orders, and their reader."""

    def __init__(self, directory: Path, of_classes: bool = False) -> None:
        self.file = SharedFile()
        self.path = self.file.save(directory)
        memory = SharedMemory(os.open(self.path, os.O_RDONLY), str(self.path))
        self.resolver = Files()
        self.orders = LockOrders(memory, self.resolver, of_classes)
        self.locks: list[Lock] = [records.lock(id_, f"l{id_}") for id_ in (A, B, C)]
        for birth, tid in ((1, 101), (2, 102)):
            self.file.add_life(birth, tid)

    def add(self, held: Sequence[int], lock: int, birth: int, **fields: Any) -> Any:
        values = {"flags": ALL_KNOWN, "stack": 10 * held[0] + lock} | fields
        entry = self.file.add_order(held, lock, seen=birth << 32, **values)
        for at in range(len(held)):
            entry.site[at] = 0x100 * held[at]
        return entry

    def rows(self, **fields: int) -> dict[int, LockRow]:
        return {one.id: lock_row(lock=one.id, **fields) for one in self.locks}

    def refresh(self) -> LockOrders:
        self.path.write_bytes(self.file.data)
        self.orders.refresh()
        return self.orders

    def found(self, final: bool = True) -> PotentialDeadlocks:
        return self.refresh().potential(self.locks, self.rows(), final)


@pytest.fixture
def orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Orders:
    """Orders that are read at each scan, however long the last reading took."""
    monkeypatch.setattr("locktop.collector.sources.preload.lock_orders.REST", 0)
    return Orders(tmp_path)


def test_two_opposite_orders_of_two_threads_are_a_potential_deadlock(orders: Orders) -> None:
    orders.add([A], B, 1)
    orders.add([B], A, 2)
    (cycle,) = orders.found().cycles
    edges = {(edge.from_, edge.to): edge for edge in cycle.edges}
    assert edges.keys() == {(A, B), (B, A)}
    assert (edges[A, B].tid, edges[B, A].tid) == (101, 102)
    assert (edges[A, B].stack, edges[A, B].site) == (12, 0x100)
    assert not edges[A, B].shared
    assert not edges[A, B].from_shared
    assert orders.orders.locks == {A, B}


def test_orders_of_one_direction_are_none(orders: Orders) -> None:
    orders.add([A], B, 1)
    orders.add([A, B], C, 2)
    assert orders.found() == PotentialDeadlocks()
    assert orders.orders.locks == frozenset()


def test_a_file_without_orders_has_none(orders: Orders) -> None:
    assert orders.found() == PotentialDeadlocks()


def test_readers_alone_block_nobody(orders: Orders) -> None:
    orders.add([A], B, 1, flags=ALL_KNOWN | 1 | lib.LT_ORDER_SHARED)
    orders.add([B], A, 2, flags=ALL_KNOWN | 1 | lib.LT_ORDER_SHARED)
    assert orders.found().cycles == ()


def test_a_hold_for_reading_is_known(orders: Orders) -> None:
    orders.add([C, A], B, 1, flags=ALL_KNOWN | 2)
    orders.add([B], A, 2)
    (cycle,) = orders.found().cycles
    edges = {(edge.from_, edge.to): edge for edge in cycle.edges}
    assert (edges[A, B].from_shared, edges[A, B].shared) == (True, False)
    assert edges[A, B].site == 0x100
    assert not edges[B, A].from_shared


def test_another_life_is_another_lock(orders: Orders) -> None:
    orders.add([A], B, 1)
    orders.add([B], A, 2).life = 7
    assert orders.found() == PotentialDeadlocks()


def test_orders_of_two_epochs_do_not_belong_together(orders: Orders) -> None:
    orders.add([A], B, 1)
    orders.add([B], A, 2).epoch = 7
    assert orders.found().cycles == ()


def test_a_creator_and_the_thread_that_it_creates_later_do_not_meet(orders: Orders) -> None:
    orders.add([A], B, 1)
    orders.add([B], A, 3)
    life = orders.file.add_life(3, 103)
    life.creator, life.created_in = 1, 0
    assert orders.found().cycles == ()
    life.creator = 0
    orders.file.header.orders_changed += 1
    assert len(orders.found().cycles) == 1


def test_an_order_that_a_thread_is_making_is_read_when_it_is_complete(orders: Orders) -> None:
    orders.add([A], B, 1)
    entry = orders.add([B], A, 2)
    entry.hash = 0
    assert orders.found().cycles == ()
    entry.hash = 5
    assert orders.found().cycles == ()  # the library counts a change when the entry is complete
    orders.file.header.orders_changed += 1
    assert len(orders.found().cycles) == 1


def test_a_damaged_count_of_held_locks_reads_no_more_than_there_is_room_for(
    orders: Orders,
) -> None:
    orders.add([B], A, 2)
    entry = orders.add([A], B, 1)
    entry.held[0 : lib.LT_ORDER_HELD] = [A] * lib.LT_ORDER_HELD
    entry.held_count = 1 << 30
    assert orders.refresh().locks == {A, B}
    assert orders.found().is_cut is False


@pytest.mark.parametrize(
    ("of_files", "fields", "proven"),
    [(True, {}, True), (False, {}, False), (False, {"made_at": 1}, True),
     (False, {"generation": 1}, True)],
)  # fmt: skip
def test_a_lock_without_a_known_life_proves_nothing(
    orders: Orders, of_files: bool, fields: dict[str, int], proven: bool
) -> None:
    orders.add([A], B, 1, flags=0)
    orders.add([B], A, 2, flags=0)
    orders.resolver.of_files = of_files
    found = orders.refresh().potential(orders.locks, orders.rows(**fields), True)
    assert (len(found.cycles), found.unproven) == ((1, 0) if proven else (0, 1))


def test_a_lock_with_its_cookie_is_identified(orders: Orders) -> None:
    orders.add([A], B, 1)
    orders.add([B], A, 2)
    orders.resolver.of_files = False
    assert len(orders.found().cycles) == 1


def test_locks_without_a_row_have_no_facts(orders: Orders) -> None:
    orders.add([A], B, 1)
    orders.add([B], A, 2)
    rows = orders.rows()
    del rows[B]
    assert orders.refresh().potential(orders.locks, rows, True).cycles == ()


@pytest.mark.parametrize("of_classes", [True, False])
def test_locks_of_a_class_are_searched_together_on_request(
    of_classes: bool, tmp_path: Path
) -> None:
    """Each pair has one order, but the classes have both."""
    orders = Orders(tmp_path, of_classes)
    names = ("shard[0].a", "shard[1].a", "shard[0].b", "shard[1].b")
    orders.locks = [records.lock(id_, name) for id_, name in enumerate(names, 1)]
    orders.add([1], 3, 1)
    orders.add([4], 2, 2)
    assert (orders.found().cycles != ()) == of_classes


def test_a_result_stays_until_something_changes(orders: Orders) -> None:
    orders.add([A], B, 1)
    orders.add([B], A, 2)
    first = orders.found()
    assert orders.found() is first
    orders.resolver.changes += 1
    assert orders.found() is first, "the new name is that of no lock"
    orders.locks = [replace(lock, name="g_lock") for lock in orders.locks]
    assert orders.found() is first, "names are read again when there are new ones"
    orders.resolver.changes += 1
    second = orders.found()
    assert second is not first, "the locks are a class now"
    orders.locks[0] = replace(orders.locks[0], foreign_releases=True)
    assert orders.found() is not second


def test_a_search_rests_as_a_multiple_of_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]

    def clock() -> float:
        now[0] += 1.0  # each search and each reading takes a second
        return now[0]

    monkeypatch.setattr(time, "monotonic", clock)
    orders = Orders(tmp_path)
    orders.add([A], B, 1)
    orders.add([B], A, 2)
    first = orders.found(final=False)
    assert len(first.cycles) == 1
    orders.resolver.changes += 1
    assert orders.found(final=False) is first
    orders.add([A], C, 1)
    orders.add([C], A, 2)
    assert len(orders.found(final=True).cycles) == 1  # the file is read less often too
    now[0] += 10.0
    assert len(orders.found(final=True).cycles) == 1
    now[0] += 30.0
    assert len(orders.found(final=False).cycles) == 2
