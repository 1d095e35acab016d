"""The hooks of function calls do no harm where programs do unusual things."""

from __future__ import annotations

import pytest
from support.call_trees import INSTRUMENTED, by_path, check_sums, counts, scanned, tree_of
from support.targets import Compiler, StartTarget

ALL = {"LOCKTOP_CALLS_MATCH": "*"}
CALLS = 2000

SHAPES = ["clone", "clone_shared", "small", "altstack", "jumps", "migrate"]
SHAPES += ["forks", "cancels", "odd", "ends"]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_program_goes_on(
    shape: str, start_unprepared: StartTarget, start_target: StartTarget
) -> None:
    alone = start_unprepared("call_extremes", shape, flags=INSTRUMENTED)
    assert alone.finish() == (0, ["ok"]), "without the library"
    for environment in ({}, ALL):
        target = start_target("call_extremes", shape, flags=INSTRUMENTED, environment=environment)
        assert target.finish() == (0, ["ok"]), environment


def test_ten_thousand_threads_have_their_calls(start_target: StartTarget) -> None:
    target = start_target("call_extremes", "crowd", flags=INSTRUMENTED)
    target.expect("ok")
    snapshot = scanned(target.pid)
    tree = tree_of(snapshot, 0)
    found = counts(by_path(snapshot, tree))
    threads = found["member"]
    assert (threads, found["member/leaf"]) == (10_000, 20_000)
    assert (tree.too_deep, tree.left_out, tree.unmatched) == (0, 0, 0)
    check_sums(snapshot)


def test_a_thread_counts_on_after_a_handler_left_the_hooks(start_target: StartTarget) -> None:
    """A handler that never returns may have interrupted the library while it made a node."""
    target = start_target("call_extremes", "jumps", flags=INSTRUMENTED)
    target.expect("ok")
    snapshot = scanned(target.pid)
    tree = tree_of(snapshot, target.pid)
    found = [
        node.count
        for node in tree.nodes
        if node.parent is not None
        and tree.nodes[node.parent].parent is None
        and snapshot.stacks[node.function][-1].function == "new_10"
    ]
    assert sum(found) == CALLS


def test_the_first_call_from_a_library_waits_for_no_thread(
    compiler: Compiler, start_unprepared: StartTarget, start_target: StartTarget
) -> None:
    """A thread reads the loader's list and waits for a lock that the calling thread holds."""
    library = str(compiler.program("call_library", *INSTRUMENTED, "-shared", "-fPIC"))
    how = ("call_extremes", "loader", library)
    assert start_unprepared(*how, flags=INSTRUMENTED).finish() == (0, ["ok"])
    target = start_target(*how, flags=INSTRUMENTED, environment=ALL)
    assert target.finish() == (0, ["ok"])
