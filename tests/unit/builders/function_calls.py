"""Function calls: trees, one with a value in every field, and snapshots with them."""

from __future__ import annotations

from msgspec.structs import replace
from unit.builders import records, scenarios

from locktop.collector.extensions.calls.model import CallNode, CallTree
from locktop.collector.model import Snapshot

MAIN, WORK, FIND, STORE = 901, 902, 903, 904
NAMES = {MAIN: "main", WORK: "work", FIND: "find", STORE: "store"}


def node(parent: int | None, function: int, count: int, total_s: float, own_s: float) -> CallNode:
    return CallNode(parent, function, count, total_s, own_s)


def thread_tree(tid: int, scale: float = 1.0) -> CallTree:
    """main calls work 10 times. work calls find 20 times, which calls itself, and store once."""
    nodes = (
        CallNode(None, MAIN, 1, 10 * scale, 1 * scale, 2 * scale, active=True),
        CallNode(0, WORK, 10, 9 * scale, 2 * scale, 2 * scale),
        CallNode(1, FIND, 20, 6 * scale, 4 * scale),
        CallNode(2, FIND, 5, 2 * scale, 2 * scale),
        CallNode(1, STORE, 1, 1 * scale, 1 * scale, 0.5 * scale),
    )
    return CallTree(tid, f"worker-{tid}", nodes, traced_s=10 * scale)


def snapshot(*trees: CallTree) -> Snapshot:
    made = scenarios.normal()
    stacks = {
        stack: (records.frame(name, "store.c", stack, 0x402000 + stack),)
        for stack, name in NAMES.items()
    }
    return replace(
        made, sections={"calls": trees} if trees else {}, stacks={**made.stacks, **stacks}
    )


def function_calls() -> tuple[CallTree, ...]:
    """Return the tree of the thread 4711, whose functions are those of stack 3."""
    nodes = (
        CallNode(None, 3, 2, 1.5, 0.5, 0.25, active=True),
        CallNode(0, 3, 7, 1.0, 1.0, short_count=2),
    )
    return (CallTree(4711, "main", nodes, 1.5, 1, 2, 3),)
