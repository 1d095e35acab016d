"""The tree of calls is right, however a function is entered and left."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.call_trees import (
    INSTRUMENTED,
    by_path,
    check_sums,
    counts,
    scanned,
    scanned_in_hear,
    tree_of,
)
from support.targets import StartTarget

from locktop.collector.extensions.calls.model import CallTree, calls_of

N = 100  # rounds of each shape

Run = Callable[..., tuple[dict[str, int], CallTree]]


@pytest.fixture
def run(start_target: StartTarget) -> Run:
    """Runs one shape; returns the counts by path and the tree: ``run(shape, ended=False)``."""

    def run_shape(
        shape: str, ended: bool = False, **environment: str
    ) -> tuple[dict[str, int], CallTree]:
        target = start_target("call_shapes", shape, flags=INSTRUMENTED, environment=environment)
        assert target.truth()["rounds"] == N
        snapshot = scanned_in_hear(target.pid)
        check_sums(snapshot)
        tree = tree_of(snapshot, 0 if ended else target.pid)
        return counts(by_path(snapshot, tree)), tree

    return run_shape


def nested(path: str, name: str, depth: int) -> dict[str, int]:
    """Return N calls at each depth of a function that calls itself."""
    return {path + f"/{name}" * level: N for level in range(1, depth + 1)}


EXACT: dict[str, dict[str, int]] = {
    "recursion": {"recursion": 1, **nested("recursion", "recurse", 5)},
    "jumps": {
        "jumps": 1,
        "jumps/try_jump": N,
        **nested("jumps/try_jump", "jump_deeper", 4),
        "jumps/try_jump/leaf": N,
    },
    "tails": {
        "tails": 1,
        "tails/tail_middle": N,
        "tails/tail_middle/tail_last": N,
        **nested("tails", "tail_of_value", 4),
        "tails/leaf": N,
    },
    "rooms": {"rooms": 1, **nested("rooms", "makes_room", 6), "rooms/leaf": N},
    "inlines": {
        "inlines": 1,
        "inlines/inlined": 2 * N,
        "inlines/leaf": N,
        "inlines/has_inlined": N,
        "inlines/has_inlined/inlined": 2 * N,
        "inlines/has_inlined/leaf": N,
    },
    "signals": {
        "signals": 1,
        "signals/raises": 2 * N,
        "signals/raises/leaf": 4 * N,
        "signals/raises/handle": 2 * N,
        "signals/raises/handle/handler_leaf": 2 * N,
        "signals/raises_and_is_left": N,
        "signals/raises_and_is_left/leaf": 2 * N,
        "signals/raises_and_is_left/handle_and_jump": N,
    },
    "vforks": {"vforks": 1, "vforks/in_vfork_child": N, "vforks/leaf": N},
}


@pytest.mark.parametrize("shape", EXACT)
def test_counts_are_exact(run: Run, shape: str) -> None:
    found, tree = run(shape)
    assert found == EXACT[shape]
    assert (tree.too_deep, tree.left_out, tree.unmatched) == (0, 0, 0)


@pytest.mark.parametrize("shape", ["threads", "high_handler_stack"])
def test_calls_of_ended_threads_are_kept(run: Run, shape: str) -> None:
    """The stack of the second shape's signal handler lies above the thread's own stack."""
    expected = {
        "threads": {
            "ending": N,
            "ending/ends_thread": N,
            "ending/ends_thread/leaf": N,
            "whole": N,
            "whole/leaf": N,
        },
        "high_handler_stack": {
            "low_thread": 1,
            "low_thread/raises": N,
            "low_thread/raises/leaf": 2 * N,
            "low_thread/raises/handle": N,
            "low_thread/raises/handle/handler_leaf": N,
        },
    }
    found, tree = run(shape, ended=True)
    assert found == expected[shape]
    assert (tree.too_deep, tree.left_out, tree.unmatched) == (0, 0, 0)


def test_signal_handlers_between_any_two_instructions(start_target: StartTarget) -> None:
    target = start_target("call_shapes", "interrupted", flags=INSTRUMENTED)
    handled_signals = target.truth()["handled_signals"]
    snapshot = scanned(target.pid)
    tree = tree_of(snapshot, target.pid)
    found = counts(by_path(snapshot, tree))
    handled = {path: count for path, count in found.items() if path.endswith("/handle_often")}
    assert sum(handled.values()) + tree.left_out // 2 == handled_signals
    for path, count in handled.items():
        assert found[f"{path}/handler_leaf"] == count
    assert tree.too_deep == tree.unmatched == 0
    check_sums(snapshot)


@pytest.mark.parametrize("limit", [1, 2, 10, 31, 32, 33, 256])
def test_calls_beyond_the_depth_limit_are_counted_apart(run: Run, limit: int) -> None:
    depth = 302  # deep() and its recursion
    found, tree = run("deep", LOCKTOP_CALLS_DEPTH=str(limit))
    kept = {"deep": 1} | ({"deep/leaf": 1} if limit > 1 else {})
    assert found == kept | nested("deep", "recurse", limit - 1)
    assert tree.too_deep == N * (depth - limit) + (limit == 1)
    assert (tree.left_out, tree.unmatched) == (0, 0)


@pytest.mark.parametrize("limit", [1, 2])
@pytest.mark.parametrize("shape", EXACT)
def test_a_call_beyond_the_depth_limit_ends_with_itself(run: Run, shape: str, limit: int) -> None:
    _, whole = run(shape)
    found, tree = run(shape, LOCKTOP_CALLS_DEPTH=str(limit))
    assert found == {path: count for path, count in EXACT[shape].items() if path.count("/") < limit}
    counted, calls = (sum(node.count for node in one.nodes) for one in (tree, whole))
    assert counted + tree.too_deep == calls
    assert (tree.left_out, tree.unmatched) == (0, 0)


def test_nodes_beyond_the_limit_are_counted_apart(start_target: StartTarget) -> None:
    target = start_target("call_nodes", flags=INSTRUMENTED)
    truth = target.truth()
    snapshot = scanned(target.pid)
    tree = tree_of(snapshot, target.pid)
    assert 65_000 < len(tree.nodes) <= 65_536
    known = sum(node.count for node in tree.nodes)
    assert known + tree.left_out == truth["calls"]
    assert (tree.too_deep, tree.unmatched) == (0, 0)
    check_sums(snapshot)


def test_a_child_begins_with_the_open_calls(start_target: StartTarget) -> None:
    target = start_target("call_shapes", "forks", flags=INSTRUMENTED)
    child = int(target.line())
    snapshot = scanned(child)
    tree = tree_of(snapshot, child)
    found = counts(by_path(snapshot, tree))
    assert found == {"forks": 1, "forks/in_child": 1, "forks/in_child/leaf": 2}
    check_sums(snapshot)
    parent = scanned(target.pid)
    found = counts(by_path(parent, tree_of(parent, target.pid)))
    assert found == {"forks": 1, "forks/leaf": 1}
    target.go_on()


def test_a_program_with_stacks_of_its_own_goes_on(run: Run) -> None:
    """The times and the callers are not exact: docs/calls.md says why."""
    found, tree = run("contexts")
    leaves = sum(count for path, count in found.items() if path.endswith("leaf"))
    assert leaves + tree.left_out == 3 * N - 1
    assert found["contexts"] == 1


@pytest.mark.parametrize("environment", [{}, {"LOCKTOP_CALLS_MATCH": "nothing"}])
def test_the_hooks_keep_all_registers(
    start_unprepared: StartTarget, start_target: StartTarget, environment: dict[str, str]
) -> None:
    flags = (*INSTRUMENTED, "-lm")
    assert start_unprepared("call_registers", flags=flags).finish() == (0, ["ok"])
    target = start_target("call_registers", flags=flags, environment=environment)
    target.expect("ok")
    trees = calls_of(scanned(target.pid))
    counted = sum(node.count for tree in trees for node in tree.nodes)
    assert counted == 0 if environment else counted > 100_000
    assert target.finish() == (0, [])
