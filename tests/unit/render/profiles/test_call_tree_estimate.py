"""The limits of an estimated call tree, and its butterflies."""

from __future__ import annotations

import pytest

from locktop.collector.render.profiles import call_tree_estimate
from locktop.collector.render.profiles.call_tree import (
    Butterfly,
    Node,
    SourceLine,
    Step,
    StepKind,
    Wing,
)
from locktop.collector.render.profiles.call_tree_estimate import FunctionGroup, FunctionRow

LOCK = Step("mutex g_lock", kind=StepKind.LOCK)
LINE = SourceLine("a.c", 7)


def row(name: str, value: float, own: float = 0.0) -> FunctionRow:
    return FunctionRow(Step(name), value, own)


def depth(node: Node) -> int:
    return 1 + max(map(depth, node.children), default=-1)


def chain(count: int) -> dict[Step, FunctionGroup]:
    """Functions that each call the next one."""
    rows = [row(f"f{n}", 1.0) for n in range(count)]
    return {
        made.step: FunctionGroup(made, tuple(rows[n - 1 : n]), tuple(rows[n + 1 : n + 2]))
        for n, made in enumerate(rows)
    }


@pytest.mark.parametrize(
    ("count", "notes"),
    [(200, ()), (201, ("branches of more than 200 calls are not followed further",))],
)
def test_a_branch_has_two_hundred_calls(count: int, notes: tuple[str, ...]) -> None:
    root, found = call_tree_estimate.tree(chain(count))
    assert (depth(root), found) == (200, notes)


@pytest.mark.parametrize(
    ("most", "names", "notes"),
    [
        (3, ["large", "small"], ()),
        (2, [], ("the tree ends at 2 branches: the smallest are not followed",)),
    ],
)
def test_a_tree_has_so_many_branches(
    most: int, names: list[str], notes: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_tree_estimate, "MAX_NODES", most)
    callees = (row("small", 1.0), row("large", 2.0))
    root, found = call_tree_estimate.tree(
        {Step("main"): FunctionGroup(row("main", 3.0), (), callees)}
    )
    assert [child.step.name for child in root.children[0].children] == names
    assert found == notes


def test_a_branch_has_its_part_of_a_function_with_two_callers() -> None:
    shared = (row("a", 6.0), row("b", 2.0))
    groups = {
        Step("a"): FunctionGroup(row("a", 6.0), (), (row("f", 6.0, 3.0),)),
        Step("b"): FunctionGroup(row("b", 2.0), (), (row("f", 2.0, 1.0),)),
        Step("f"): FunctionGroup(row("f", 8.0, 4.0), shared, (row("g", 4.0, 4.0),)),
    }
    root, _ = call_tree_estimate.tree(groups)
    assert root.value == 8.0
    assert [
        (entry.step.name, entry.value, entry.children[0].children[0].value)
        for entry in root.children
    ] == [("a", 6.0, 3.0), ("b", 2.0, 1.0)]


def test_a_butterfly_has_the_wait_of_its_locks_as_its_own() -> None:
    middle = FunctionRow(Step("f"), 8.0, 1.0, LINE)
    callees = (row("g", 2.0), FunctionRow(LOCK, 5.0, 5.0))
    groups = {middle.step: FunctionGroup(middle, (row("main", 8.0),), callees)}
    assert call_tree_estimate.butterfly(groups, Step("f")) == Butterfly(
        Step("f"),
        8.0,
        6.0,
        location=LINE,
        callers=(Wing(Step("main"), 8.0),),
        callees=(Wing(LOCK, 5.0), Wing(Step("g"), 2.0)),
    )
    assert call_tree_estimate.butterfly(groups, LOCK) == Butterfly(LOCK, 0.0)
    root, _ = call_tree_estimate.tree(groups)
    (entry,) = root.children
    assert [child.own for child in entry.children] == [0.0, 0.0], "a lock has no own value"
