"""Functions and tree of the samples inside a lock."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders import records, scenarios

from locktop.collector.errors import LocktopError
from locktop.collector.model import Frame, InsideProfile, InsideStack, Lock, LockInside, Snapshot
from locktop.collector.render.documents import inside_json
from locktop.collector.render.profiles.inside_tree import inside, lock_named
from locktop.collector.render.text import inside as inside_text
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
    lock = replace(made.locks[0], inside=LockInside(samples, on_cpu, 0.5, stacks, (0.25, 0.5), 5.0))
    profile = InsideProfile(10.0, 0.01, samples + 3, 3, 1, 2)
    return (
        replace(made, locks=(lock,), stacks=STACKS, sites=SITES, inside=profile),
        lock,
    )


WHOLE = (
    InsideStack(SITE, 1, 6, True),
    InsideStack(SITE, 2, 3, False, "read"),
    InsideStack(SITE, 3, 1, True),
)


def test_the_frames_above_the_call_site_are_cut() -> None:
    found = inside(*snapshot(*WHOLE))
    (root,) = found.root.children
    assert (root.step.name, root.value, root.own) == ("work", 10, 1)
    assert [(child.step.name, child.value) for child in root.children] == [
        ("first", 6),
        ("second", 3),
    ]


def test_functions_have_own_and_total_samples() -> None:
    found = inside(*snapshot(*WHOLE))
    assert [(one.step.name, one.own, one.total, one.asleep) for one in found.functions] == [
        ("copy", 6, 6, 0),
        ("second", 3, 3, 3),
        ("work", 1, 10, 3),
        ("first", 0, 6, 0),
    ]


def test_the_callers_of_a_function_that_only_locks_are_cut() -> None:
    stacks = InsideStack(WRAPPER_SITE, 4, 6, True), InsideStack(WRAPPER_SITE, 5, 4, True)
    (root,) = inside(*snapshot(*stacks)).root.children
    assert root.step.name == "guard"
    assert [child.step.name for child in root.children] == ["first", "second"]


def test_stacks_and_sites_may_be_unknown() -> None:
    found = inside(*snapshot(InsideStack(0, 0, 2, True)))
    (root,) = found.root.children
    assert root.step.name == "call site not known"
    assert [child.step.name for child in root.children] == ["no stack known"]


def test_the_shares_are_of_all_samples() -> None:
    document = inside_json.document(*snapshot(*WHOLE))
    shares = {one["function"]: one["total_share"] for one in document["functions"]}
    assert shares == pytest.approx({"copy": 0.6, "second": 0.3, "work": 1.0, "first": 0.6})
    assert [node["depth"] for node in document["nodes"]] == [0, 1, 2, 1]
    assert document["pressure"] == [0.25, 0.5]
    assert document["pressure_slice_s"] == 5.0


def test_the_text_has_no_line_that_is_too_long() -> None:
    for width in (60, 100):
        text = inside_text.render(*snapshot(*WHOLE), width)
        assert all(len(line) <= width for line in text.splitlines())
    assert "10 samples" in text
    assert "60.0 %   60.0 %        -  copy at work.c:1" in text


def test_a_lock_has_an_id_an_address_and_a_name() -> None:
    locks = scenarios.normal().locks
    lock = locks[0]
    assert lock_named(locks, str(lock.id)) is lock
    assert lock_named(locks, hex(lock.address)) is lock
    assert lock_named(locks, lock.name) is lock


def test_an_unknown_lock_is_answered_with_the_contended_ones() -> None:
    locks = scenarios.normal().locks
    with pytest.raises(LocktopError, match=f"contended locks: {locks[0].name}"):
        lock_named(locks, "no such lock")
    with pytest.raises(LocktopError, match="no lock is contended"):
        lock_named((), "0xzz")


def test_several_locks_of_a_name_are_listed() -> None:
    lock = scenarios.normal().locks[0]
    with pytest.raises(LocktopError, match="2 locks"):
        lock_named((lock, replace(lock, id=99)), lock.name)


def test_the_text_report_names_the_functions_of_each_sampled_lock() -> None:
    made, lock = snapshot(*WHOLE)
    page = report.render(made, width=80)
    assert "WHAT RUNS INSIDE LOCKS, most samples first" in page
    assert f"mutex {lock.name} (id {lock.id}): 10 samples" in page
    assert "   60.0 %   60.0 %        -  copy at work.c:1" in page
    assert max(map(len, page.splitlines())) <= 80
    assert "WHAT RUNS" not in report.render(replace(made, inside=None, locks=()))
