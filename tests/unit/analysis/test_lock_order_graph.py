"""Which lock orders may be part of a cycle."""

from __future__ import annotations

import time

from locktop.collector.analysis.lock_order_graph import OrderLocks, orders_in_cycles


def order(index: int, held: list[int], lock: int, epoch: int = 1) -> OrderLocks:
    return OrderLocks(index, epoch, (lock, 0), tuple((one, 0) for one in held))


def found(orders: list[OrderLocks], names: dict[int, str] | None = None) -> list[int]:
    return [one.index for one in orders_in_cycles(orders, names)]


def test_an_order_counts_if_it_leads_back() -> None:
    orders = [order(0, [1], 2), order(1, [2], 1), order(2, [2], 3), order(3, [4, 1], 2)]
    assert found(orders) == [0, 1, 3]


def test_an_order_between_two_cycles_is_part_of_none() -> None:
    orders = [order(0, [1], 2), order(1, [2], 1), order(2, [3], 4), order(3, [4], 3)]
    assert found([*orders, order(4, [1], 3)]) == [0, 1, 2, 3]


def test_another_life_or_epoch_is_another_lock() -> None:
    assert found([order(0, [1], 2), order(1, [2], 1, epoch=2)]) == []
    again = OrderLocks(1, 1, (1, 1), ((2, 0),))
    assert found([order(0, [1], 2), again]) == []


def test_a_class_is_one_node() -> None:
    orders = [order(0, [1], 2), order(1, [3], 4)]
    assert found(orders) == []
    assert found(orders, {1: "a[]", 4: "a[]", 2: "b[]", 3: "b[]"}) == [0, 1]
    assert found(orders, {1: "a[]", 4: "a[]", 2: "b[]"}) == []


def test_a_full_table_without_a_cycle_takes_no_time() -> None:
    orders = [order(n, [n % 400], 400 + n) for n in range(65_536)]
    begun = time.process_time()
    assert found(orders) == []
    assert time.process_time() - begun < 5
