"""The library counts and times the function calls of instrumented programs."""

from __future__ import annotations

import pytest
from support.call_trees import INSTRUMENTED, by_path, check_sums, scanned, tree_of
from support.targets import StartTarget

COUNTED = ("most", "some", "little")


def test_counts_are_exact_and_times_are_those_of_the_program(start_target: StartTarget) -> None:
    target = start_target("call_times", flags=INSTRUMENTED)
    for _ in range(2):
        truth = target.truth()
        snapshot = scanned(target.pid)
        tree = tree_of(snapshot, target.pid)
        nodes = by_path(snapshot, tree)
        found = [nodes[f"main/batch/{name}"] for name in COUNTED]
        assert [node.count for node in found] == truth["counts"]
        for node, seconds in zip(found, truth["seconds"], strict=True):
            assert node.own_s == pytest.approx(seconds, rel=0.02)
        whole = nodes["main/batch"]
        # The hooks themselves take time, and a busy neighbour may interrupt them.
        assert whole.total_s == pytest.approx(sum(truth["seconds"]), rel=0.05)
        assert nodes["main"].active
        assert nodes["main/hear"].active
        assert not whole.active
        assert (tree.too_deep, tree.left_out, tree.unmatched) == (0, 0, 0)
        check_sums(snapshot)
        target.go_on()
