"""Strongly connected components of a directed graph."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def strong_components(graph: Mapping[Node, Iterable[Node]]) -> list[list[Node]]:
    """Return the strongly connected components of more than one node.

    The algorithm is Tarjan's ("Depth-first search and linear graph algorithms", SIAM Journal on
    Computing 1972). This form has no recursion, because a chain of threads may be long.

    Args:
        graph: The successors of each node. A node may appear as a successor alone.
    """
    index: dict[Node, int] = {}
    low: dict[Node, int] = {}
    stack: list[Node] = []
    on_stack: set[Node] = set()
    components: list[list[Node]] = []
    for root in graph:
        if root in index:
            continue
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        work: list[tuple[Node, Iterator[Node]]] = [(root, iter(graph[root]))]
        while work:
            node, successors = work[-1]
            for other in successors:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    on_stack.add(other)
                    work.append((other, iter(graph.get(other, ()))))
                    break
                if other in on_stack:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = _pop(stack, on_stack, node)
                    if len(component) > 1:
                        components.append(component)
    return components


def _pop(stack: list[Node], on_stack: set[Node], down_to: Node) -> list[Node]:
    """Remove the nodes of a component from the stack, and return them in their order there."""
    component: list[Node] = []
    while not component or component[-1] != down_to:
        component.append(stack.pop())
        on_stack.discard(component[-1])
    return component[::-1]
