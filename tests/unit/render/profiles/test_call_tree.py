"""The call tree and the butterfly, compared with tables made by hand, and their sums."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace
from support.seeds import seeds
from unit.builders import python_waits, records
from unit.builders.call_trees import flat

from locktop.collector.analysis.idle.classifier import Classifier
from locktop.collector.model import Blame, Frame, Kind, Snapshot, ThreadState, WaitStack
from locktop.collector.render.profiles import call_tree
from locktop.collector.render.profiles.call_tree import (
    COUNT,
    WAIT,
    Branch,
    Butterfly,
    SourceLine,
    StackCall,
    Step,
    StepKind,
    Wing,
    branches,
    butterflies,
    butterfly,
    tree,
)


def at(name: str, line: int = 0) -> StackCall:
    if name.startswith("lock "):
        return StackCall(Step(name, kind=StepKind.LOCK))
    return StackCall(Step(name), SourceLine("a.c", line) if line else None)


def stack(value: float, *names: str, idle: bool = False) -> Branch:
    return Branch(tuple(at(name) for name in names), value, idle)


FOUND = (
    stack(6.0, "main", "serve", "get", "lock a"),
    stack(3.0, "main", "serve", "put", "lock a"),
    stack(1.0, "main", "serve", "put", "lock b"),
    stack(2.0, "start", "put", "lock b"),
    stack(50.0, "start", "pool", "lock c", idle=True),
)


def test_every_value_belongs_to_its_own_branch() -> None:
    assert flat(tree(FOUND)) == [
        ("/main", 10.0, 0.0),
        ("/main/serve", 10.0, 0.0),
        ("/main/serve/get", 6.0, 6.0),
        ("/main/serve/get/lock a", 6.0, 0.0),
        ("/main/serve/put", 4.0, 4.0),
        ("/main/serve/put/lock a", 3.0, 0.0),
        ("/main/serve/put/lock b", 1.0, 0.0),
        ("/start", 2.0, 0.0),
        ("/start/put", 2.0, 2.0),
        ("/start/put/lock b", 2.0, 0.0),
        ("/start/pool", 0.0, 0.0),
        ("/start/pool/lock c", 0.0, 0.0),
    ]


def test_idle_waits_are_separate_and_add_nothing_to_contention() -> None:
    root = tree(FOUND)
    assert (root.value, root.idle) == (12.0, 50.0)
    start = root.children[1]
    assert (start.value, start.idle, start.own_idle) == (2.0, 50.0, 0.0)
    pool = start.children[1]
    assert (pool.step.name, pool.value, pool.idle, pool.own_idle) == ("pool", 0.0, 50.0, 50.0)


def test_a_butterfly_has_the_value_through_each_caller_and_callee() -> None:
    put = butterfly(FOUND, Step("put"))
    assert (put.value, put.own) == (6.0, 6.0)
    assert put.callers == (Wing(Step("serve"), 4.0), Wing(Step("start"), 2.0))
    assert put.callees == (
        Wing(Step("lock a", kind=StepKind.LOCK), 3.0),
        Wing(Step("lock b", kind=StepKind.LOCK), 3.0),
    )
    main = butterfly(FOUND, Step("main"))
    assert (main.value, main.own, main.callers) == (10.0, 0.0, ())
    lock = butterfly(FOUND, Step("lock b", kind=StepKind.LOCK))
    assert (lock.value, lock.own) == (3.0, 0.0)
    assert lock.callers == (Wing(Step("put"), 3.0),)


def test_an_unknown_function_has_an_empty_butterfly() -> None:
    assert butterfly(FOUND, Step("nobody")) == Butterfly(Step("nobody"), 0.0)


def test_recursion_is_a_node_for_each_depth_but_counts_once_in_the_butterfly() -> None:
    found = (
        stack(4.0, "main", "walk", "walk", "walk", "lock a"),
        stack(1.0, "main", "walk", "step", "walk", "lock a"),
    )
    assert flat(tree(found)) == [
        ("/main", 5.0, 0.0),
        ("/main/walk", 5.0, 0.0),
        ("/main/walk/walk", 4.0, 0.0),
        ("/main/walk/walk/walk", 4.0, 4.0),
        ("/main/walk/walk/walk/lock a", 4.0, 0.0),
        ("/main/walk/step", 1.0, 0.0),
        ("/main/walk/step/walk", 1.0, 1.0),
        ("/main/walk/step/walk/lock a", 1.0, 0.0),
    ]
    walk = butterfly(found, Step("walk"))
    assert (walk.value, walk.own) == (5.0, 5.0)
    assert [(wing.step.name, wing.value) for wing in walk.callers] == [
        ("main", 5.0), ("walk", 4.0), ("step", 1.0),
    ]  # fmt: skip
    assert [(wing.step.name, wing.value) for wing in walk.callees] == [
        ("lock a", 5.0), ("walk", 4.0), ("step", 1.0),
    ]  # fmt: skip


def test_lines_of_one_function_are_one_node_at_the_line_with_the_most() -> None:
    found = (
        Branch((at("main", 10), at("f", 3), at("lock a")), 2.0),
        Branch((at("main", 20), at("f", 3), at("lock a")), 3.0),
        Branch((at("main", 10), at("f", 4), at("lock a")), 2.0),
    )
    (main,) = tree(found).children
    assert (main.value, main.location) == (7.0, SourceLine("a.c", 10))
    (inner,) = main.children
    assert (inner.value, inner.location) == (7.0, SourceLine("a.c", 3))
    assert butterfly(found, Step("main")).location == SourceLine("a.c", 10)


# ---- trees of a snapshot ----


def snapshot(**more: object) -> Snapshot:
    outer = records.frame("main", "main.c", 9)
    stacks = {
        1: (records.frame("get", "get.c", 4), outer),
        2: (Frame(0x7F01, "", None, None, "lib.so", 0x1401), outer),
        3: (Frame(0x7F02, "", None, None, "lib.so", 0x1402), outer),
    }
    locks = (
        records.lock(
            1, "a", wait_s=7.0, contended=5,
            wait_stacks=(WaitStack(1, 3, 4.0), WaitStack(2, 1, 2.0), WaitStack(3, 1, 1.0)),
        ),
        records.lock(
            2, "b", Kind.COND, wait_s=100.0, contended=0, wait_stacks=(WaitStack(1, 9, 100.0),)
        ),
    )  # fmt: skip
    made = records.snapshot((), locks, stacks=stacks)
    return Classifier().classify(replace(made, **more))  # type: ignore[arg-type]


def test_a_frame_without_a_name_is_known_by_its_address() -> None:
    (main,) = tree(branches(snapshot(), call_tree.WAIT)).children
    assert [(node.step.name, node.value) for node in main.children] == [
        ("get", 4.0), ("lib.so+0x1401", 2.0), ("lib.so+0x1402", 1.0),
    ]  # fmt: skip


def test_inlined_functions_are_nodes_and_marked_if_always_inlined() -> None:
    inner = replace(records.frame("swap", "a.c", 4), inlined=True)
    outer = records.frame("put", "a.c", 9)
    alone = replace(inner, inlined=False)
    found = snapshot(stacks={1: (inner, outer), 2: (inner, outer), 3: (alone,)})
    root = tree(branches(found, call_tree.WAIT))
    put, swap = root.children
    assert (put.step.name, put.value, put.inlined) == ("put", 6.0, False)
    assert [(node.step.name, node.value, node.inlined) for node in put.children] == [
        ("swap", 6.0, True)
    ]
    assert (swap.value, swap.inlined) == (1.0, False)
    assert butterfly(branches(found, call_tree.WAIT), put.step).callees[0].inlined


def test_python_functions_of_one_name_differ_by_their_files() -> None:
    def run(file: str) -> tuple[Frame, ...]:
        return (Frame(0x1, "run", file, 3, "python", 0),)

    found = snapshot(stacks={1: run("/a/jobs.py"), 2: run("/b/jobs.py"), 3: run("/a/jobs.py")})
    found = replace(found, locks=tuple(one for one in found.locks if one.name == "a"))
    nodes = tree(branches(found, call_tree.WAIT)).children
    assert [(node.step.name, node.value) for node in nodes] == [("run", 5.0), ("run", 2.0)]


def test_the_same_function_of_two_modules_is_two() -> None:
    here = records.frame("get", "get.c", 4)
    there = replace(here, module="other.so")
    found = snapshot(stacks={1: (here,), 2: (there,), 3: (here,)})
    nodes = tree(branches(found, call_tree.WAIT)).children
    assert [(node.step.name, node.step.module, node.value) for node in nodes] == [
        ("get", "store", 5.0), ("get", "other.so", 2.0),
    ]  # fmt: skip


def test_weights_are_the_exact_counters() -> None:
    waited = tree(branches(snapshot(), call_tree.WAIT))
    assert (waited.value, waited.idle) == (7.0, 100.0)
    counted = tree(branches(snapshot(), call_tree.COUNT))
    assert (counted.value, counted.idle) == (5.0, 9.0)
    with pytest.raises(ValueError, match="weather"):
        branches(snapshot(), "weather")


def test_a_wait_without_a_stack_says_so() -> None:
    lock = records.lock(1, "a", wait_s=10.0, contended=4, wait_stacks=(WaitStack(1, 3, 4.0),))
    found = snapshot(locks=(lock,))
    assert flat(tree(branches(found, call_tree.WAIT))) == [
        ("/no stack known", 6.0, 6.0),
        ("/no stack known/mutex a", 6.0, 0.0),
        ("/main", 4.0, 0.0),
        ("/main/get", 4.0, 4.0),
        ("/main/get/mutex a", 4.0, 0.0),
    ]
    assert tree(branches(found, call_tree.COUNT)).value == 4.0


def test_blame_is_one_frame_below_the_thread_that_held() -> None:
    lock = records.lock(
        1, "a", blame=(Blame(12, 0x401100, 3.0), Blame(13, 0x401100, 1.0), Blame(13, 0x99, 2.0))
    )
    threads = (records.thread(12, "writer", ThreadState.RUNNING),)
    assert flat(tree(branches(snapshot(locks=(lock,), threads=threads), call_tree.BLAME))) == [
        ("/thread 13", 3.0, 2.0),
        ("/thread 13/mutex a", 2.0, 0.0),
        ("/thread 13/cache_put", 1.0, 1.0),
        ("/thread 13/cache_put/mutex a", 1.0, 0.0),
        ("/writer", 3.0, 0.0),
        ("/writer/cache_put", 3.0, 3.0),
        ("/writer/cache_put/mutex a", 3.0, 0.0),
    ]


def test_a_stack_of_any_depth_is_added_up() -> None:
    deep = Branch((*(at(f"f{n}") for n in range(20_000)), at("lock a")), 1.0)
    assert len(call_tree.steps(tree([deep]))) == 20_001


# ---- rules of every tree ----


def some_stacks(seed: int) -> list[Branch]:
    """Random stacks of few functions, so that functions meet and call themselves."""
    chance = random.Random(seed)
    names = [f"f{n}" for n in range(6)]
    return [
        Branch(
            (
                *(
                    at(chance.choice(names), chance.randint(1, 3))
                    for _ in range(chance.randint(1, 9))
                ),
                at(f"lock {chance.randint(1, 3)}"),
            ),
            chance.randint(1, 1000) / 16,  # sums of such values are exact
            chance.random() < 0.3,
        )
        for _ in range(chance.randint(1, 60))
    ]


def test_children_and_own_value_add_up_to_each_node() -> None:
    for seed in seeds(30):
        found = some_stacks(seed)
        root = tree(found)
        assert root.value == sum(branch.value for branch in found if not branch.idle)
        assert root.idle == sum(branch.value for branch in found if branch.idle)
        assert root.value == sum(entry.value for entry in root.children)
        line = [*root.children]
        for node in line:
            calls = [child for child in node.children if child.step.kind is StepKind.FUNCTION]
            locks = [child for child in node.children if child.step.kind is StepKind.LOCK]
            assert node.own == sum(lock.value for lock in locks)
            assert node.own_idle == sum(lock.idle for lock in locks)
            if node.step.kind is StepKind.FUNCTION:
                assert node.value == sum(child.value for child in calls) + node.own
                assert node.idle == sum(child.idle for child in calls) + node.own_idle
            line += node.children


def test_a_butterfly_counts_each_stack_once() -> None:
    for seed in seeds(30):
        found = some_stacks(seed)
        for step, made in butterflies(found).items():
            through = [branch for branch in found if step in {call.step for call in branch.calls}]
            assert made.value == sum(branch.value for branch in through if not branch.idle)
            assert made.idle == sum(branch.value for branch in through if branch.idle)
            assert made == butterfly(found, step)
            for wing in made.callers:
                pairs = [
                    branch.value
                    for branch in through
                    if not branch.idle
                    and (wing.step, step)
                    in zip(steps_of(branch), steps_of(branch)[1:], strict=False)
                ]
                assert wing.value == sum(pairs)


def steps_of(branch: Branch) -> list[Step]:
    return [call.step for call in branch.calls]


def test_many_locks_of_one_class_end_one_branch() -> None:
    names = [*["conn::mu"] * 20, *(f"shards[{n}].mu" for n in range(9)), "few[0]", "few[1]"]
    seen = records.snapshot(
        (),
        tuple(
            records.lock(n, name, contended=2, wait_s=1.0, wait_stacks=(WaitStack(5, 2, 1.0),))
            for n, name in enumerate(names, 1)
        ),
        stacks={5: (records.frame("take", "a.c", 1), records.frame("main", "a.c", 2))},
    )
    for weight, each in ((WAIT, 1.0), (COUNT, 2)):
        (main,) = tree(branches(seen, weight)).children
        (take,) = main.children
        assert {child.step.name: child.value for child in take.children} == {
            "mutex conn::mu, many locks": 20 * each,
            "mutex shards[].mu, many locks": 9 * each,
            "mutex few[0]": each,
            "mutex few[1]": each,
        }


def test_parts_of_a_divided_wait_are_estimates_whose_sum_is_exact() -> None:
    snapshot = python_waits.divided()
    root = tree(branches(snapshot, WAIT))
    assert flat(root) == [
        ("/begins", 100.0, 0.0),
        ("/begins/serve", 80.0, 0.0),
        ("/begins/serve/price", 60.0, 60.0),
        ("/begins/serve/price/mutex g_orders", 60.0, 0.0),
        ("/begins/serve/refund", 20.0, 20.0),
        ("/begins/serve/refund/mutex g_orders", 20.0, 0.0),
        ("/begins/evaluates", 20.0, 0.0),
        ("/begins/evaluates/takes", 20.0, 20.0),
        ("/begins/evaluates/takes/mutex g_orders", 20.0, 0.0),
    ]
    (begins,) = root.children
    assert not begins.estimate, "all parts have it"
    assert all(child.estimate for child in begins.children)
    lock = Step("mutex g_orders", kind=StepKind.LOCK, number=python_waits.LOCK)
    found = butterfly(branches(snapshot, WAIT), lock)
    assert (found.value, found.estimate) == (100.0, False)
    assert [wing.estimate for wing in found.callers] == [True, True, True]
    assert butterfly(branches(snapshot, WAIT), Step("serve", "serve.py")).estimate


def test_a_wait_with_functions_of_one_kind_is_an_estimate_from_python_on() -> None:
    snapshot = python_waits.divided()
    (lock,) = snapshot.locks
    only = replace(lock.wait_stacks[0], python=python_waits.SHARES[:1])
    whole = replace(snapshot, locks=(replace(lock, wait_stacks=(only,)),))
    (begins,) = tree(branches(whole, WAIT)).children
    assert [begins.estimate, begins.children[0].estimate] == [False, True]


def test_the_number_of_waits_is_never_divided() -> None:
    root = tree(branches(python_waits.divided(), COUNT))
    (begins,) = root.children
    assert [child.step.name for child in begins.children] == ["evaluates"]
    assert not begins.children[0].estimate


@pytest.mark.parametrize("lines", [(7, 9), (7, 8, 9)])
def test_the_line_of_a_function_is_the_one_with_the_most_of_its_value(
    lines: tuple[int, ...],
) -> None:
    found = [
        Branch((at("main", line), at("get", 1), at("lock a")), float(line), False) for line in lines
    ]
    (main,) = tree(found).children
    assert main.location == SourceLine("a.c", 9)
    assert butterfly(found, Step("main")).location == SourceLine("a.c", 9)
    (caller,) = butterfly(found, Step("get")).callers
    assert caller.location == SourceLine("a.c", 9)
