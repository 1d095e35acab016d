"""The graph of all lock orders, and which orders may be part of a cycle.

Most orders of a program with many locks are in no cycle. To find these costs little, so
``lock_order_cycles.py`` only searches the others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct

from locktop.collector.analysis.strong_components import strong_components

#: A lock id and a generation: the lock between two initialisations.
Instance = tuple[int, int]
_Node = tuple[int, Instance | str]


class OrderLocks(Struct, frozen=True, gc=False):
    """The locks of one lock order."""

    index: int  # of the order in the table of the shared memory
    epoch: int
    lock: Instance  # the requested lock
    held: tuple[Instance, ...]


def orders_in_cycles(
    orders: Collection[OrderLocks], class_names: Mapping[int, str] | None = None
) -> list[OrderLocks]:
    """Return the orders that may be part of a cycle, whether it could happen or not.

    Args:
        orders: The orders.
        class_names: Names of lock classes, by lock id. Then one node stands for all locks of a
            class.
    """
    names = class_names or {}
    graph: dict[_Node, set[_Node]] = {}
    for order in orders:
        to = _node(order.epoch, order.lock, names)
        for held in order.held:
            graph.setdefault(_node(order.epoch, held, names), set()).add(to)
    component_of = {
        node: number
        for number, component in enumerate(strong_components(graph))
        for node in component
    }
    if not component_of:
        return []
    return [order for order in orders if _is_inside(order, component_of, names)]


def _node(epoch: int, instance: Instance, names: Mapping[int, str]) -> _Node:
    return epoch, names.get(instance[0]) or instance


def _is_inside(
    order: OrderLocks, component_of: Mapping[_Node, int], names: Mapping[int, str]
) -> bool:
    """Return whether the order leads from a lock to a lock of the same component."""
    to = component_of.get(_node(order.epoch, order.lock, names))
    return to is not None and any(
        component_of.get(_node(order.epoch, held, names)) == to for held in order.held
    )
