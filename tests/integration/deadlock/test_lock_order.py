"""Potential deadlocks: told where one can come about, and not where it only looks like it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support import tool
from support.targets import StartTarget, Target

from locktop.collector.export.text import report
from locktop.collector.model import Confidence, OrderCycle, Snapshot
from locktop.collector.sources.attach import attach

HIGH, MEDIUM, LOW = Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW

#: By scenario of a program in tests/targets/order: confidence, number of locks, and the near miss,
#: one of NONE.
REAL = {
    "inversion": (HIGH, 2, "timed_second"),
    "same_thread_and_another": (HIGH, 2, "same_thread"),
    "tried_first": (HIGH, 2, "tried_second"),
    "three": (HIGH, 3, "three_by_two_threads"),
    "three_at_once_by_two_threads": (HIGH, 2, "hand_over_hand"),
    "ring": (HIGH, 6, "ring_with_an_end"),
    "gate_of_one": (HIGH, 2, "gate"),
    "gate_left_out_once": (HIGH, 2, "gate"),
    "gate_of_readers": (HIGH, 2, "gate_of_a_writer"),
    "while_it_lives": (HIGH, 2, "before_it_was_created"),
    "beside_another": (HIGH, 2, "after_it_was_joined"),
    "readers_that_write": (HIGH, 2, "a_writer_that_reads"),
    "readers_behind_writers": (MEDIUM, 2, "readers"),
    "spins": (HIGH, 2, "spin_tried_second"),
    "waiting": (HIGH, 2, "waiting_before"),
    "initialised": (HIGH, 2, "initialised_again"),
    "classes": (LOW, 2, "classes_with_gates"),
    "accounts": (HIGH, 2, "accounts_of_one"),
}
#: The same of locks that no call initialised: told only where they carry a mark.
REAL_WITH_MARKS = {
    "on_the_heap": (HIGH, 2, "freed_unseen"),
    "mapped": (HIGH, 2, "unmapped_unseen"),
    "on_a_stack": (HIGH, 2, "on_a_stack_that_returned"),
    "readers_on_the_heap": (HIGH, 2, "readers_freed_unseen"),
}
NONE_WITH_MARKS = (
    "freed_unseen",
    "unmapped_unseen",
    "on_a_stack_that_returned",
    "readers_freed_unseen",
)
NONE = (
    "same_thread",
    "tried_second",
    "timed_second",
    "three_by_two_threads",
    "hand_over_hand",
    "ring_with_an_end",
    "gate",
    "gate_of_a_writer",
    "before_it_was_created",
    "before_its_creator_was_created",
    "after_it_was_joined",
    "before_and_after",
    "readers",
    "a_writer_that_reads",
    "spin_tried_second",
    "recursive",
    "waiting_before",
    "handed_over",
    "initialised_again",
    "initialised_over",
    "made_on_a_stack_that_returned",
    "unmapped_and_initialised",
    "destroyed",
    "classes_with_gates",
    "accounts_of_one",
)

#: Of tests/targets/order/reused_lock_addresses.c.
OF_ADDRESSES = {
    *REAL_WITH_MARKS,
    *NONE_WITH_MARKS,
    "initialised",
    "initialised_again",
    "initialised_over",
    "made_on_a_stack_that_returned",
    "unmapped_and_initialised",
    "destroyed",
}
#: Of tests/targets/order/orders_of_other_locks.c.
OF_OTHER_LOCKS = {
    "readers",
    "readers_that_write",
    "a_writer_that_reads",
    "readers_behind_writers",
    "spins",
    "spin_tried_second",
    "recursive",
    "waiting",
    "waiting_before",
    "handed_over",
    "classes",
    "classes_with_gates",
    "accounts",
    "accounts_of_one",
}

Look = Callable[..., Snapshot]


def program_of(scenario: str) -> str:
    """Return the program of tests/targets that has it."""
    if scenario in OF_ADDRESSES:
        return "reused_lock_addresses"
    return "orders_of_other_locks" if scenario in OF_OTHER_LOCKS else "mutex_orders"


def scan(target: Target) -> Snapshot:
    source = attach(target.pid)
    try:
        return source.scan(resolve=True)
    finally:
        source.close()


@pytest.fixture
def orders(start_target: StartTarget) -> Look:
    """What is seen of a scenario that is over."""

    def run(scenario: str, **how: object) -> Snapshot:
        target = start_target(program_of(scenario), scenario, **how)
        target.expect("ok")
        return scan(target)

    return run


def told(snapshot: Snapshot) -> list[tuple[Confidence, int]]:
    return [(cycle.confidence, len(cycle.locks)) for cycle in snapshot.lock_order]


@pytest.mark.parametrize("scenario", REAL)
def test_what_can_come_about_is_told(scenario: str, orders: Look) -> None:
    snapshot = orders(scenario)
    assert told(snapshot) == [REAL[scenario][:2]]
    (cycle,) = snapshot.lock_order
    assert bool(cycle.why) == (cycle.confidence is not HIGH)
    assert snapshot.deadlocks == ()
    check_whole(cycle, snapshot)


def test_each_has_its_near_miss() -> None:
    assert {near_miss for _, _, near_miss in REAL.values()} <= set(NONE)
    assert {near_miss for _, _, near_miss in REAL_WITH_MARKS.values()} == set(NONE_WITH_MARKS)


def marked(scenario: str, orders: Look) -> Snapshot:
    return orders(scenario, environment={"LOCKTOP_ORDER": "mark"})


@pytest.mark.parametrize("scenario", REAL_WITH_MARKS)
def test_what_has_a_mark_is_known_again(scenario: str, orders: Look) -> None:
    snapshot = marked(scenario, orders)
    assert told(snapshot) == [REAL_WITH_MARKS[scenario][:2]]
    check_whole(snapshot.lock_order[0], snapshot)


@pytest.mark.parametrize("scenario", NONE_WITH_MARKS)
def test_an_address_used_again_is_another_lock(scenario: str, orders: Look) -> None:
    snapshot = marked(scenario, orders)
    assert (told(snapshot), snapshot.lock_order_unproven) == ([], 0)


def test_a_lock_that_is_held_is_not_looked_at(start_target: StartTarget) -> None:
    for order in ("1", "mark"):
        how = {"environment": {"LOCKTOP_ORDER": order}}
        start_target("reused_lock_addresses", "unmapped_while_held", **how).expect("ok")


@pytest.mark.parametrize("scenario", [*REAL_WITH_MARKS, *NONE_WITH_MARKS])
def test_without_marks_nobody_knows(scenario: str, orders: Look) -> None:
    snapshot = orders(scenario)
    assert (told(snapshot), snapshot.lock_order_unproven) == ([], 1)
    assert "LOCKTOP_ORDER=mark" in report.render(snapshot)


@pytest.mark.parametrize("scenario", [*REAL, *NONE])
def test_marks_change_no_other_verdict(scenario: str, orders: Look) -> None:
    snapshot = marked(scenario, orders)
    assert told(snapshot) == ([REAL[scenario][:2]] if scenario in REAL else [])
    assert snapshot.lock_order_unproven == 0


@pytest.mark.parametrize("scenario", NONE)
def test_what_cannot_is_not(scenario: str, orders: Look) -> None:
    assert told(orders(scenario)) == []


def check_whole(cycle: OrderCycle, snapshot: Snapshot) -> None:
    """Each edge is another thread's, and leads to the next; all of it has a stack and a name."""
    assert len({edge.tid for edge in cycle.edges}) == len(cycle.edges)
    assert cycle.locks == tuple(edge.from_ for edge in cycle.edges)
    names = {lock.id: lock.name for lock in snapshot.locks}
    for edge, following in zip(cycle.edges, (*cycle.edges[1:], cycle.edges[0]), strict=True):
        if not cycle.classes:
            assert edge.to == following.from_
        assert {edge.from_, edge.to} <= set(names)
        assert snapshot.stacks[edge.stack][-1].function
        assert snapshot.sites[edge.site].function
        assert edge.tid


def test_where_and_by_whom(orders: Look) -> None:
    snapshot = orders("inversion")
    (cycle,) = snapshot.lock_order
    names = {lock.id: lock.name for lock in snapshot.locks}
    assert {names[lock] for lock in cycle.locks} == {"g_a", "g_b"}
    for edge in cycle.edges:
        wanted = "a_b" if names[edge.from_] == "g_a" else "b_a"
        functions = [frame.function for frame in snapshot.stacks[edge.stack]]
        assert functions[:3] == ["take", "both", wanted]
        assert snapshot.sites[edge.site].function == "take"


def test_classes_are_named(orders: Look) -> None:
    (cycle,) = orders("classes").lock_order
    assert {name.removeprefix("orders_of_other_locks.c: ") for name in cycle.classes} == {
        "g_pool[].first",
        "g_pool[].second",
    }
    assert "class" in cycle.why


def test_what_is_not_known_is_said(orders: Look) -> None:
    assert "writer" in orders("readers_behind_writers").lock_order[0].why


@pytest.mark.parametrize("level", ["counting", "blocks", "all"])
def test_at_which_levels(level: str, orders: Look) -> None:
    assert told(orders("inversion", level=level)) == ([] if level == "counting" else [(HIGH, 2)])


def test_it_can_be_turned_off(orders: Look) -> None:
    assert told(orders("inversion", environment={"LOCKTOP_ORDER": "0"})) == []


def test_a_dead_process_shows_them_too(start_target: StartTarget) -> None:
    target = start_target("mutex_orders", "inversion")
    target.expect("ok")
    source = attach(target.pid)
    try:
        source.scan()
        target.kill()
        assert told(source.scan(resolve=True)) == [(HIGH, 2)]
    finally:
        source.close()


def test_the_page_for_a_ticket_tells_them_last(start_target: StartTarget) -> None:
    target = start_target("orders_of_other_locks", "readers_that_write")
    target.expect("ok")
    done = tool.run("snapshot", "-p", target.pid, "--format", "text")
    page = done.stdout[done.stdout.index("POTENTIAL DEADLOCKS") :]
    assert "high confidence" in page
    assert "wanted rwlock g_s while it held rwlock g_r, to read," in page
    assert "read_write_r_s" in page
    assert done.stdout.index("LOCKS") < done.stdout.index("POTENTIAL")


def test_what_a_file_leaves_out(start_target: StartTarget, tmp_path: Path) -> None:
    target = start_target("mutex_orders", "inversion")
    target.expect("ok")
    rules = tmp_path / "rules"
    rules.write_text("a_b AND b_a  # they never run at once\n")
    document = tool.snapshot(target.pid, "--suppressions", str(rules))
    assert (document["lock_order"], document["lock_order_suppressed"]) == ([], 1)
    rules.write_text("# why not\na_b\n")
    done = tool.run("snapshot", "-p", target.pid, "--suppressions", str(rules))
    assert done.returncode == 2
    assert f"{rules}:2: there is no reason" in done.stderr
