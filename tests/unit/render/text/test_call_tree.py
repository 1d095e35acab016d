"""The call tree and the butterfly as pages of text."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from support.pages import page
from unit.builders import scenarios
from unit.builders.made_profiles import COUNT, GET, LEAF, MIDDLE, REPORT, ROOT, MadeProfile, branch

from locktop.collector.model import Frame, Snapshot
from locktop.collector.render.profiles.call_tree import Node, Step
from locktop.collector.render.profiles.profile import Profile, SnapshotProfile, Weight, weight_of
from locktop.collector.render.text import call_tree

MADE = MadeProfile(ROOT, MIDDLE)
ESTIMATE = MadeProfile(ROOT._replace(idle=0.0), LEAF, estimate=True)
STORE = SnapshotProfile(scenarios.normal())


@pytest.mark.parametrize(
    ("name", "profile", "weight", "idle", "step"),
    [
        ("tree", MADE, COUNT, False, None),
        ("tree-idle", MADE, COUNT, True, None),
        ("tree-estimate", ESTIMATE, REPORT, False, None),
        ("tree-empty", MadeProfile(branch(Step(""), 0.0), LEAF), COUNT, False, None),
        ("tree-store", STORE, weight_of(STORE.weights, None), True, None),
        ("tree-blame", STORE, weight_of(STORE.weights, "blame"), False, None),
        ("butterfly", MADE, COUNT, False, GET),
        ("butterfly-idle", MADE, COUNT, True, GET),
        ("butterfly-leaf", ESTIMATE, COUNT, True, GET),
    ],
)
def test_the_pages_of_a_call_tree(
    name: str, profile: Profile, weight: Weight, idle: bool, step: Step | None
) -> None:
    made = (
        call_tree.render_tree(profile, weight, idle)
        if step is None
        else call_tree.render_butterfly(profile, weight, step, idle)
    )
    assert made == page(name)


def deep(levels: int) -> Node:
    """Return a chain of functions, each with a sibling, so that each is indented."""
    node = branch(Step("the_end_of_a_chain_of_calls"), 60.0)
    for level in range(levels):
        node = branch(Step(f"f{level}"), 60.0 + level, node, branch(Step(f"g{level}"), 1.0))
    return branch(Step(""), 100.0, node)


@pytest.mark.parametrize("width", [60, 80])
def test_a_deep_branch_leaves_room_for_a_name(width: int) -> None:
    text = call_tree.render_tree(MadeProfile(deep(40), LEAF), COUNT, False, width)
    assert max(map(len, text.splitlines())) <= width
    (end,) = [line for line in text.splitlines() if "the_end" in line or "chain" in line]
    assert len(end) == width


def unnamed(module: str) -> Snapshot:
    """A snapshot with one stack of a function without a name."""
    frames = (Frame(0x401000, "", None, None, module, 0x1000),)
    calm = scenarios.normal()
    return replace(calm, stacks=dict.fromkeys(calm.stacks, frames))


def test_a_function_without_a_name_is_named_by_its_module_once() -> None:
    profile = SnapshotProfile(unnamed("libz.so"))
    text = call_tree.render_tree(profile, weight_of(profile.weights, None), False)
    assert "libz.so+0x1000\n" in text
