"""Profiles: their titles, weights and notes, and the step that a name stands for."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace
from unit.builders import inside_samples, python_stacks, python_waits, records, scenarios
from unit.builders.call_trees import flat

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.inside.lock_profile import InsideLockProfile
from locktop.collector.model import Deadlock, PythonShare, Snapshot, WaitStack
from locktop.collector.render.profiles.call_tree import Node, Step
from locktop.collector.render.profiles.profile import (
    Profile,
    ReportProfile,
    SnapshotProfile,
    may_learn_functions,
    step_named,
    weight_of,
)
from locktop.collector.render.profiles.vsperf_report import parse

NORMAL = scenarios.normal()
STUCK = scenarios.deadlock()
ITSELF = replace(STUCK, deadlocks=(Deadlock(True, 1.0, STUCK.deadlocks[0].cycle[:1]),))
POSSIBLE = replace(STUCK, deadlocks=(replace(STUCK.deadlocks[0], certain=False),))
WITHOUT_BLAME = replace(NORMAL, locks=tuple(replace(lock, blame=()) for lock in NORMAL.locks))


@pytest.mark.parametrize(
    ("snapshot", "weight", "notes"),
    [
        (NORMAL, "wait", ()),
        (NORMAL, "blame", ()),
        (STUCK, "wait", ("3 threads deadlocked",)),
        (ITSELF, "wait", ("1 thread deadlocked",)),
        (POSSIBLE, "wait", ()),
        (WITHOUT_BLAME, "wait", ()),
        (WITHOUT_BLAME, "blame", ("this snapshot has no blame",)),
        (replace(NORMAL, level="counting"), "wait", ("no stacks are taken at level counting",)),
        (replace(NORMAL, notes=("a note",)), "wait", ("a note",)),
        (python_waits.divided(), "count", ()),
        (
            python_waits.divided(),
            "wait",
            ("Python functions: an estimate from 40 waits that locktop saw while they lasted",),
        ),
    ],
)  # fmt: skip
def test_the_notes_of_a_snapshot(snapshot: Snapshot, weight: str, notes: tuple[str, ...]) -> None:
    assert SnapshotProfile(snapshot).notes(weight) == notes


REPORT = """\
Function Name,Type,Inclusive Samples,Exclusive Samples,Module Name
main,Root,100,40,p.exe
work,Callee,60,60,p.exe
work,Root,60,60,p.exe
main,Caller,60,0,p.exe
"""
SAMPLED = inside_samples.with_samples(replace(NORMAL, notes=("a note",)), 1, lost=1)
INSIDE = InsideLockProfile(SAMPLED, SAMPLED.locks[0])


def from_report() -> ReportProfile:
    return ReportProfile(parse(REPORT.encode(), "r.csv"), "r.csv")


@pytest.mark.parametrize(
    ("profile", "title", "weights", "notes"),
    [
        (
            SnapshotProfile(NORMAL),
            "store 4711 on db1, 2026-11-21T03:12:45.678Z",
            [("wait", "time waited", "s"), ("count", "waits", "count"),
             ("blame", "time others waited for a holder", "s")],
            (),
        ),
        (from_report(), "r.csv, a caller/callee report", [("samples", "samples", "count")], ()),
        (
            INSIDE,
            "inside mutex g_cache_lock, 2026-11-21T03:12:45.678Z",
            [("held", "time held", "s"), ("on_cpu", "time held on CPU", "s"),
             ("asleep", "time held asleep", "s"), ("samples", "samples", "count")],
            ("1 sample lost", "a note"),
        ),
        (
            InsideLockProfile(NORMAL, NORMAL.locks[1]),
            "inside rwlock g_table_lock, 2026-11-21T03:12:45.678Z",
            [("held", "time held", "s"), ("on_cpu", "time held on CPU", "s"),
             ("asleep", "time held asleep", "s"), ("samples", "samples", "count")],
            (),
        ),
    ],
)  # fmt: skip
def test_a_profile_names_its_source_and_its_weights(
    profile: Profile, title: str, weights: list[tuple[str, str, str]], notes: tuple[str, ...]
) -> None:
    assert profile.title == title
    assert [(one.name, one.says, str(one.unit)) for one in profile.weights] == weights
    assert profile.notes(profile.weights[0].name) == notes


def test_the_tree_and_the_butterflies_of_a_report_are_of_its_samples() -> None:
    profile = from_report()
    assert flat(profile.tree("samples")) == [("/main", 100.0, 40.0), ("/main/work", 60.0, 60.0)]
    found = profile.butterflies("samples")
    assert {step.name: (one.value, one.own) for step, one in found.items()} == {
        "main": (100.0, 40.0),
        "work": (60.0, 60.0),
    }
    assert found[Step("work", "p.exe")] == profile.butterfly("samples", Step("work", "p.exe"))


@pytest.mark.parametrize(
    ("weight", "functions"),
    [
        ("held", {"takes_most": 0.7, "takes_some": 0.2, "takes_little": 0.1}),
        ("on_cpu", {"takes_most": 0.7, "takes_little": 0.1}),
        ("asleep", {"takes_some": 0.2}),
        ("samples", {"takes_most": 70, "takes_some": 20, "takes_little": 10}),
    ],
)
def test_a_weight_inside_a_lock_counts_some_samples(
    weight: str, functions: dict[str, float]
) -> None:
    (taker,) = INSIDE.tree(weight).children
    assert taker.step.name == "holds_once"
    own = {child.step.name: child.own for child in taker.children}
    assert own == pytest.approx(functions)
    assert {one.step.name for one in INSIDE.functions(weight) if one.own} == set(functions)
    butterfly = INSIDE.butterfly(weight, taker.step)
    assert butterfly.value == pytest.approx(sum(functions.values()))
    assert INSIDE.butterflies(weight)[taker.step] == butterfly


def named(*names: str) -> Node:
    """Return a tree of functions with these names, all in one module."""
    return Node(Step(""), 1.0, children=tuple(Node(Step(name, "m"), 1.0) for name in names))


@pytest.mark.parametrize(
    ("names", "name", "found"),
    [
        (("get", "get_all"), "get", "get"),
        (("get", "get_all"), "all", "get_all"),
    ],
)
def test_a_name_stands_for_one_step(names: tuple[str, ...], name: str, found: str) -> None:
    assert step_named(named(*names), name).name == found


@pytest.mark.parametrize(
    ("names", "name", "error"),
    [
        (("get", "get_all"), "put", "no function is called 'put', and none has that in its name"),
        (("get", "get_all"), "ge", "2 functions are called like 'ge': get [m], get_all [m]"),
        (
            tuple(f"f{n}" for n in range(5)),
            "f",
            "5 functions are called like 'f': f0 [m], f1 [m], f2 [m], f3 [m], f4 [m]",
        ),
        (
            tuple(f"f{n}" for n in range(6)),
            "f",
            "6 functions are called like 'f': f0 [m], f1 [m], f2 [m], f3 [m], f4 [m] and 1 more",
        ),
    ],
)
def test_a_name_of_no_step_or_of_several_is_an_error(
    names: tuple[str, ...], name: str, error: str
) -> None:
    with pytest.raises(LocktopError, match=f"^{re.escape(error)}$"):
        step_named(named(*names), name)


def test_a_weight_has_a_name_or_is_the_first() -> None:
    weights = SnapshotProfile(NORMAL).weights
    assert weight_of(weights, None).name == "wait"
    assert weight_of(weights, "blame").name == "blame"
    with pytest.raises(LocktopError, match="no weight 'x' in it; there are wait, count, blame"):
        weight_of(weights, "x")


#: Waits in Python, whose functions samples saw 29 times.
SEEN = WaitStack(1, 90, 2.0, python=(PythonShare(7, 60, 29), PythonShare(1, 20, 9)))
PYTHON = python_stacks.native(python_stacks.EVALUATION)


@pytest.mark.parametrize(
    ("waits", "changes", "may"),
    [
        (SEEN, {}, True),
        (replace(SEEN, python=(PythonShare(7, 60, 30),)), {}, False),
        (replace(SEEN, wait_s=0.5), {}, False),
        (replace(SEEN, idle=True), {}, False),
        (SEEN, {"source": "proc"}, False),
        (SEEN, {"ended": True}, False),
        (SEEN, {"stacks": {}}, False),
        (SEEN, {"locks": ()}, False),
    ],
)
def test_further_scans_may_show_functions_of_python(
    waits: WaitStack, changes: dict[str, object], may: bool
) -> None:
    lock = records.lock(1, "g_lock", wait_stacks=(WaitStack(2, 9, 1.0), waits))
    snapshot = replace(records.snapshot((), (lock,)), stacks={1: PYTHON})
    assert may_learn_functions(replace(snapshot, **changes)) is may
