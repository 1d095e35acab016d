"""A signal handler may interrupt the hooks of function calls at each instruction."""

from __future__ import annotations

import pytest
from support.call_trees import INSTRUMENTED, by_path, check_sums, scanned, tree_of
from support.targets import StartTarget

from locktop.collector.extensions.calls.model import calls_of

#: A thread's frames have room for 32 at first. One is the root's, and one that of "stepped".
FULL = 29
#: More instructions than a call of a known function has, with its hooks.
WHOLE = 300


@pytest.mark.parametrize("call", ["first", "again"])
@pytest.mark.parametrize("depth", [3, FULL])
def test_the_calls_of_the_handler_are_counted(
    start_target: StartTarget, depth: int, call: str
) -> None:
    """At the depth ``FULL``, the call that the handler makes lets the thread's frames grow."""
    target = start_target("call_steps", "call", str(depth), str(WHOLE), call, flags=INSTRUMENTED)
    target.expect("ok")
    snapshot = scanned(target.pid)
    trees = [tree for tree in calls_of(snapshot) if len(tree.nodes) > depth]
    assert len(trees) == WHOLE
    for tree in trees:
        found = by_path(snapshot, tree)
        path = "/".join(["dive"] * (depth + 1))
        assert (found[path].count, found[path + "/stepped"].count) == (1, 1)
        works = sum(node.count for path, node in found.items() if path.endswith("work"))
        calls = 1 + (call == "again")
        assert works + tree.left_out in (calls, calls + 1)  # the last instructions are not reached
        assert tree.unmatched == 0
    check_sums(snapshot)


def test_the_next_thread_counts_after_the_handler_ended_one(start_target: StartTarget) -> None:
    """A thread may end while it adds to its tree. The next thread takes over that tree."""
    target = start_target("call_steps", "exit", str(FULL), str(WHOLE), "first", flags=INSTRUMENTED)
    target.expect("ok")
    snapshot = scanned(target.pid)
    found = by_path(snapshot, tree_of(snapshot, 0))
    path = "/".join(["dive"] * (FULL + 1))
    assert (found[path].count, found[path + "/stepped"].count) == (WHOLE, WHOLE)


def test_a_raw_clone_during_a_hook_counts_nothing(start_target: StartTarget) -> None:
    """The child has no fork handler, and shares the tree of its parent."""
    target = start_target("call_steps", "bare", "3", str(WHOLE), "first", flags=INSTRUMENTED)
    target.expect("ok")
    snapshot = scanned(target.pid)
    trees = [tree for tree in calls_of(snapshot) if len(tree.nodes) > 3]
    assert len(trees) == WHOLE
    for tree in trees:
        works = [node.count for path, node in by_path(snapshot, tree).items() if "work" in path]
        assert (sum(works), tree.left_out) == (1, 0)
