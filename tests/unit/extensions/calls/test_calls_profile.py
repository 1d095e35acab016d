"""Function calls: trees of several threads in one, lists of functions, and what came since."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders.function_calls import FIND, MAIN, NAMES, WORK, node, snapshot, thread_tree

from locktop.collector.extensions.calls.calls_profile import (
    COUNT,
    NO_CALLS,
    OWN,
    TOTAL,
    WAIT,
    CallsProfile,
)
from locktop.collector.extensions.calls.function_calls import (
    ENDED,
    FunctionSum,
    contexts,
    functions,
    sum_calls,
)
from locktop.collector.extensions.calls.model import CallTree
from locktop.collector.render.profiles.call_tree import Node, Step


def by_name(profile: CallsProfile) -> dict[str, FunctionSum]:
    return {one.step.name: one for one in functions(profile.calls.root)}


def child(node: Node, name: str) -> Node:
    (found,) = [one for one in node.children if one.step.name == name]
    return found


def test_a_recursive_function_counts_its_time_once() -> None:
    found = by_name(CallsProfile(snapshot(thread_tree(1))))
    assert (found["find"].count, found["find"].total_s, found["find"].own_s) == (25, 6.0, 6.0)
    assert (found["main"].count, found["main"].total_s, found["main"].active) == (1, 10.0, True)


def test_own_times_add_up_to_the_traced_time() -> None:
    calls = sum_calls(snapshot(thread_tree(1), thread_tree(2, 3.0)))
    assert calls.traced_s == 40.0
    assert sum(one.own_s for one in functions(calls.root)) == pytest.approx(40.0)


def test_threads_are_merged_or_chosen() -> None:
    made = snapshot(thread_tree(1), thread_tree(2, 3.0))
    assert by_name(CallsProfile(made))["work"].count == 20
    assert by_name(CallsProfile(made, tid=2))["work"].total_s == 27.0
    assert sum_calls(made, 7).threads == ()


def test_the_tree_has_each_weight() -> None:
    profile = CallsProfile(snapshot(thread_tree(1)))
    work = child(child(profile.tree(TOTAL), "main"), "work")
    assert (work.value, work.own) == (9.0, 2.0)
    assert [one.step.name for one in work.children] == ["find", "store"]
    counted = profile.tree(COUNT)
    assert counted.value == 37
    assert (child(counted, "main").value, child(counted, "main").own) == (37, 1)
    waited = child(child(profile.tree(WAIT), "main"), "work")
    assert (waited.value, waited.own) == (2.0, 1.5)
    assert [one.step.name for one in profile.tree(OWN).children] == [
        "find",
        "work",
        "main",
        "store",
    ]


def test_callers_and_callees() -> None:
    profile = CallsProfile(snapshot(thread_tree(1)))
    step = child(child(profile.tree(TOTAL), "main"), "work").step
    found = profile.butterfly(TOTAL, step)
    assert (found.value, found.own) == (9.0, 2.0)
    assert [(one.step.name, one.value) for one in found.callers] == [("main", 9.0)]
    assert [(one.step.name, one.value) for one in found.callees] == [("find", 6.0), ("store", 1.0)]
    counted = profile.butterfly(COUNT, found.callees[0].step)
    assert {one.step.name: one.value for one in counted.callers} == {"work": 20.0, "find": 5.0}


def test_calls_since_an_earlier_scan() -> None:
    before, after = thread_tree(1), thread_tree(1, 2.0)
    more = tuple(replace(one, count=one.count + 1) for one in after.nodes[:2])
    after = replace(after, nodes=(*more, *after.nodes[2:]))
    profile = CallsProfile(snapshot(after), before=snapshot(before))
    found = by_name(profile)
    assert (found["work"].count, found["work"].total_s) == (1, 9.0)
    assert profile.calls.traced_s == 10.0
    unchanged = CallsProfile(snapshot(before), before=snapshot(before))
    assert set(by_name(unchanged)) == {"main"}, "only the call that goes on"


def test_a_clock_that_was_measured_anew_makes_no_calls() -> None:
    before, after = snapshot(thread_tree(1)), snapshot(thread_tree(1, 1.000001))
    assert set(by_name(CallsProfile(after, before=before))) == {"main"}


def test_a_thread_that_ended_since_is_no_new_call() -> None:
    ended = replace(thread_tree(1), tid=ENDED)
    profile = CallsProfile(snapshot(ended), ENDED, snapshot(thread_tree(1)))
    assert profile.calls.traced_s == 0.0


def test_damaged_callers_are_left_out() -> None:
    tree = CallTree(
        1, "x", (node(None, MAIN, 1, 1.0, 1.0), node(1, WORK, 1, 1.0, 1.0), node(9, FIND, 1, 1, 1))
    )
    assert [one.node.step.name for one in contexts(sum_calls(snapshot(tree)).root)] == ["main"]


def test_deep_trees_need_no_recursion() -> None:
    nodes = tuple(node(n - 1 if n else None, MAIN, 1, 1.0, 0.0) for n in range(20_000))
    profile = CallsProfile(snapshot(CallTree(1, "x", nodes)))
    assert by_name(profile)["main"].count == 20_000
    assert profile.tree(TOTAL).value == 1.0


def test_without_calls_a_note_says_how_to_build() -> None:
    assert CallsProfile(snapshot()).notes(TOTAL) == (NO_CALLS,)
    assert "-finstrument-functions" in NO_CALLS
    assert CallsProfile(snapshot(thread_tree(1))).notes(TOTAL) == ()


def test_what_could_not_be_counted_is_noted() -> None:
    tree = replace(thread_tree(1), too_deep=3, left_out=1234)
    notes = CallsProfile(snapshot(tree)).notes(COUNT)
    assert [note.split()[0] for note in notes] == ["3", "1,234"]


def test_a_butterfly_of_an_unknown_function_is_empty() -> None:
    assert CallsProfile(snapshot(thread_tree(1))).butterfly(TOTAL, Step("nothing")).value == 0
    assert len(NAMES) == len(CallsProfile(snapshot(thread_tree(1))).butterflies(TOTAL))


def test_an_earlier_scan_may_lack_names() -> None:
    after = snapshot(thread_tree(1))
    nameless = {stack: (replace(one[0], function=""),) for stack, one in after.stacks.items()}
    profile = CallsProfile(after, before=replace(after, stacks=nameless))
    assert profile.calls.traced_s == 0.0
