"""Call trees of function calls, with a value in every field."""

from __future__ import annotations

from locktop.collector.model import CallNode, CallTree


def function_calls() -> tuple[CallTree, ...]:
    """Return the tree of the thread 4711, whose functions are those of stack 3."""
    nodes = (
        CallNode(None, 3, 2, 1.5, 0.5, 0.25, active=True),
        CallNode(0, 3, 7, 1.0, 1.0, short_count=2),
    )
    return (CallTree(4711, "main", nodes, 1.5, 1, 2, 3),)
