"""The call trees of a running target, by names of functions."""

from __future__ import annotations

from collections.abc import Mapping

from locktop.collector.extensions.calls.model import CallNode, CallTree, calls_of
from locktop.collector.model import Snapshot
from locktop.collector.sources.attach import attach
from support.eventually import until

#: Extra flags of an instrumented target.
INSTRUMENTED = ("-finstrument-functions", "-O2")
#: Functions of target.h.
_OF_TARGET = frozenset({"hear", "must", "say", "start"})


def scanned(pid: int) -> Snapshot:
    """Return a snapshot of a process with the library, with its function calls."""
    source = attach(pid, only_exact=True)
    try:
        source.want_section("calls", True)
        return source.scan(resolve=True)
    finally:
        source.close()


def scanned_in_hear(pid: int) -> Snapshot:
    """Return a snapshot of a process whose main thread has begun its last call, hear()."""
    snapshots: list[Snapshot] = []

    def is_in_hear() -> bool:
        snapshots[:] = [scanned(pid)]
        return "hear" in by_path(snapshots[0], tree_of(snapshots[0], pid))

    until(is_in_hear, "the call of hear()")
    return snapshots[0]


def tree_of(snapshot: Snapshot, tid: int) -> CallTree:
    """Return the tree of a thread; ``tid`` 0: of all ended threads."""
    (tree_of_thread,) = [tree for tree in calls_of(snapshot) if tree.tid == tid]
    return tree_of_thread


def function_name(snapshot: Snapshot, node: CallNode) -> str:
    """Return the name of a node's function, without parameters."""
    whole = snapshot.stacks[node.function][-1].function
    return whole.replace("(anonymous namespace)::", "").partition("(")[0]


def by_path(snapshot: Snapshot, tree: CallTree) -> Mapping[str, CallNode]:
    """Return the nodes of a tree by the names of their callers and their own: "main/f"."""
    paths: list[str] = []
    for node in tree.nodes:
        name = function_name(snapshot, node)
        paths.append(name if node.parent is None else f"{paths[node.parent]}/{name}")
    assert len(set(paths)) == len(paths), "two nodes have the same callers"
    return dict(zip(paths, tree.nodes, strict=True))


def check_sums(snapshot: Snapshot) -> None:
    """Check that own times add up to the traced time, and that callees fit in their callers."""
    for tree in calls_of(snapshot):
        own_s = sum(node.own_s for node in tree.nodes)
        assert abs(own_s - tree.traced_s) <= 0.01 * tree.traced_s + 1e-6
        for node in tree.nodes:
            assert 0 <= node.own_s <= node.total_s + 1e-9


def counts(nodes: Mapping[str, CallNode]) -> dict[str, int]:
    """Return the counts of nodes by their paths, without the functions of target.h."""
    return {path: node.count for path, node in nodes.items() if not _OF_TARGET & {*path.split("/")}}
