"""Functions and tree of the samples inside a lock."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders import records, scenarios

from locktop.collector.extensions.inside import report_json, text_report
from locktop.collector.extensions.inside.inside_tree import InsideTree, inside
from locktop.collector.extensions.inside.model import InsideProfile, InsideStack, LockInside
from locktop.collector.model import Frame, Lock, Snapshot
from locktop.collector.render.text import report

SITE, WRAPPER_SITE = 0x500, 0x600


def frames(*functions: str) -> tuple[Frame, ...]:
    return tuple(records.frame(name, "work.c", 1 + at) for at, name in enumerate(functions))


STACKS = {
    1: frames("copy", "first", "work", "main"),
    2: frames("second", "work", "main"),
    3: frames("work", "main"),
    4: frames("copy", "first", "caller", "main"),
    5: frames("second", "caller", "main"),
}
SITES = {SITE: frames("work")[0], WRAPPER_SITE: frames("guard")[0]}


def snapshot(*stacks: InsideStack) -> tuple[Snapshot, Lock]:
    made = scenarios.normal()
    samples = sum(one.count for one in stacks)
    on_cpu = sum(one.count for one in stacks if one.on_cpu)
    lock = made.locks[0]
    of_lock = LockInside(samples, on_cpu, 0.5, stacks, (0.25, 0.5), 5.0)
    profile = InsideProfile(10.0, 0.01, samples + 3, 3, 1, 2, {lock.id: of_lock})
    sections = {"inside": profile}
    return replace(made, locks=(lock,), stacks=STACKS, sites=SITES, sections=sections), lock


def tree(*stacks: InsideStack) -> InsideTree:
    return inside(snapshot(*stacks)[0], stacks)


WHOLE = (
    InsideStack(SITE, 1, 6, True),
    InsideStack(SITE, 2, 3, False, "read"),
    InsideStack(SITE, 3, 1, True),
)


def test_the_frames_above_the_call_site_are_cut() -> None:
    found = tree(*WHOLE)
    (root,) = found.root.children
    assert (root.step.name, root.value, root.own) == ("work", 10, 1)
    assert [(child.step.name, child.value) for child in root.children] == [
        ("first", 6),
        ("second", 3),
    ]


def test_the_function_that_took_the_lock_has_the_line_where_it_is_now() -> None:
    stacks = (InsideStack(SITE, 3, 2, False, "read"),)
    made, _ = snapshot(*stacks)
    later = replace(STACKS[3][0], line=18)
    found = inside(replace(made, stacks={3: (later, *STACKS[3][1:])}), stacks)
    (function,) = found.functions
    assert function.location is not None
    assert function.location.line == 18
    (taker,) = found.root.children
    assert taker.location is not None
    assert taker.location.line == 1  # the tree begins at the call that took the lock


def test_functions_have_own_and_total_samples() -> None:
    found = tree(*WHOLE)
    assert [(one.step.name, one.own, one.total, one.asleep) for one in found.functions] == [
        ("copy", 6, 6, 0),
        ("second", 3, 3, 3),
        ("work", 1, 10, 3),
        ("first", 0, 6, 0),
    ]


def test_the_callers_of_a_function_that_only_locks_are_cut() -> None:
    stacks = InsideStack(WRAPPER_SITE, 4, 6, True), InsideStack(WRAPPER_SITE, 5, 4, True)
    (root,) = tree(*stacks).root.children
    assert root.step.name == "guard"
    assert [child.step.name for child in root.children] == ["first", "second"]


def test_stacks_and_sites_may_be_unknown() -> None:
    found = tree(InsideStack(0, 0, 2, True))
    (root,) = found.root.children
    assert root.step.name == "call site not known"
    assert [child.step.name for child in root.children] == ["no stack known"]


def test_the_shares_are_of_all_samples() -> None:
    document = report_json.document(*snapshot(*WHOLE))
    shares = {one["function"]: one["total_share"] for one in document["functions"]}
    assert shares == pytest.approx({"copy": 0.6, "second": 0.3, "work": 1.0, "first": 0.6})
    assert [node["depth"] for node in document["nodes"]] == [0, 1, 2, 1]
    assert document["pressure"] == [0.25, 0.5]
    assert document["pressure_slice_s"] == 5.0


def test_the_text_has_no_line_that_is_too_long() -> None:
    for width in (60, 100):
        text = text_report.render(*snapshot(*WHOLE), width)
        assert all(len(line) <= width for line in text.splitlines())
    assert "10 samples" in text
    assert "60.0 %   60.0 %        -  copy at work.c:1" in text


def test_the_text_report_names_the_functions_of_each_sampled_lock() -> None:
    made, lock = snapshot(*WHOLE)
    page = report.render(made, width=80)
    assert "WHAT RUNS INSIDE LOCKS, most samples first" in page
    assert f"mutex {lock.name} (id {lock.id}): 10 samples" in page
    assert "   60.0 %   60.0 %        -  copy at work.c:1" in page
    assert max(map(len, page.splitlines())) <= 80
    assert "WHAT RUNS" not in report.render(replace(made, sections={}))
