"""A call tree as a list that tests compare."""

from __future__ import annotations

from collections.abc import Iterator

from locktop.collector.render.profiles.call_tree import Node


def flat(root: Node) -> list[tuple[str, float, float]]:
    """Every node with its path, value and own value, depth first."""

    def below(node: Node, path: str) -> Iterator[tuple[str, float, float]]:
        for child in node.children:
            whole = f"{path}/{child.step.name}"
            yield whole, child.value, child.own
            yield from below(child, whole)

    return list(below(root, ""))
