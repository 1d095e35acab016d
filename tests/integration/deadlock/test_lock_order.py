"""A potential deadlock is reported if the lock orders allow one, and only then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support import requirements, tool
from support.targets import StartTarget, Target

from locktop.collector.model import Confidence, OrderCycle, Snapshot
from locktop.collector.render.text import report
from locktop.collector.sources.attach import attach

HIGH, MEDIUM, LOW = Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW

#: The scenarios of tests/targets/order that can deadlock. Each has the confidence, the number of
#: locks, and the near miss, which is one of NONE.
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
    "accounts": (HIGH, 2, "accounts_of_one"),
}
#: The same for locks that no call initialised. Only lock cookies (LOCKTOP_ORDER=mark) show these.
REAL_WITH_MARKS = {
    "on_the_heap": (HIGH, 2, "freed_unobserved"),
    "mapped": (HIGH, 2, "unmapped_unobserved"),
    "on_a_stack": (HIGH, 2, "on_a_stack_that_returned"),
    "readers_on_the_heap": (HIGH, 2, "readers_freed_unobserved"),
}
NONE_WITH_MARKS = (
    "freed_unobserved",
    "unmapped_unobserved",
    "on_a_stack_that_returned",
    "readers_freed_unobserved",
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

#: The scenarios of tests/targets/order/reused_lock_addresses.c.
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
#: The scenarios of tests/targets/order/orders_of_other_locks.c.
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

ScanScenario = Callable[..., Snapshot]


def program_of(scenario: str) -> str:
    """Return the program of tests/targets that has the scenario."""
    if scenario in OF_ADDRESSES:
        return "reused_lock_addresses"
    return "orders_of_other_locks" if scenario in OF_OTHER_LOCKS else "mutex_orders"


def scan(target: Target, of_classes: bool = False) -> Snapshot:
    source = attach(target.pid, of_classes=of_classes)
    try:
        return source.scan(resolve=True)
    finally:
        source.close()


@pytest.fixture
def orders(start_target: StartTarget) -> ScanScenario:
    """Runs a scenario to its end, and returns a snapshot of the program."""

    def run(scenario: str, of_classes: bool = False, **options: object) -> Snapshot:
        target = start_target(program_of(scenario), scenario, **options)
        target.expect("ok")
        return scan(target, of_classes)

    return run


def potential(snapshot: Snapshot) -> list[tuple[Confidence, int]]:
    """Return the confidence and the number of locks of each potential deadlock."""
    return [(cycle.confidence, len(cycle.locks)) for cycle in snapshot.lock_order]


@pytest.mark.parametrize("scenario", REAL)
def test_lock_orders_that_can_deadlock_are_reported(scenario: str, orders: ScanScenario) -> None:
    snapshot = orders(scenario)
    assert potential(snapshot) == [REAL[scenario][:2]]
    (cycle,) = snapshot.lock_order
    assert bool(cycle.why) == (cycle.confidence is not HIGH)
    assert snapshot.deadlocks == ()
    check_cycle(cycle, snapshot)


def test_each_scenario_has_a_near_miss() -> None:
    assert {near_miss for _, _, near_miss in REAL.values()} <= set(NONE)
    assert {near_miss for _, _, near_miss in REAL_WITH_MARKS.values()} == set(NONE_WITH_MARKS)


def with_cookies(scenario: str, orders: ScanScenario) -> Snapshot:
    return orders(scenario, environment={"LOCKTOP_ORDER": "mark"})


@pytest.mark.parametrize("scenario", REAL_WITH_MARKS)
def test_a_lock_cookie_identifies_a_lock_that_no_call_initialised(
    scenario: str, orders: ScanScenario
) -> None:
    snapshot = with_cookies(scenario, orders)
    assert potential(snapshot) == [REAL_WITH_MARKS[scenario][:2]]
    check_cycle(snapshot.lock_order[0], snapshot)


@pytest.mark.parametrize("scenario", NONE_WITH_MARKS)
def test_lock_cookies_distinguish_two_locks_at_one_address(
    scenario: str, orders: ScanScenario
) -> None:
    snapshot = with_cookies(scenario, orders)
    assert (potential(snapshot), snapshot.lock_order_unproven) == ([], 0)


def test_the_library_does_not_read_a_held_lock_that_may_be_unmapped(
    start_target: StartTarget,
) -> None:
    for order in ("1", "mark"):
        environment = {"LOCKTOP_ORDER": order}
        target = start_target(
            "reused_lock_addresses", "unmapped_while_held", environment=environment
        )
        target.expect("ok")


@pytest.mark.parametrize("scenario", [*REAL_WITH_MARKS, *NONE_WITH_MARKS])
def test_without_cookies_an_order_of_uninitialised_locks_is_unproven(
    scenario: str, orders: ScanScenario
) -> None:
    snapshot = orders(scenario)
    assert (potential(snapshot), snapshot.lock_order_unproven) == ([], 1)
    assert "LOCKTOP_ORDER=mark" in report.render(snapshot)


@pytest.mark.parametrize("scenario", [*REAL, *NONE])
def test_cookies_change_no_other_finding(scenario: str, orders: ScanScenario) -> None:
    snapshot = with_cookies(scenario, orders)
    assert potential(snapshot) == ([REAL[scenario][:2]] if scenario in REAL else [])
    assert snapshot.lock_order_unproven == 0


@pytest.mark.parametrize("scenario", NONE)
def test_lock_orders_that_cannot_deadlock_are_not_reported(
    scenario: str, orders: ScanScenario
) -> None:
    assert potential(orders(scenario, of_classes=True)) == []


def check_cycle(cycle: OrderCycle, snapshot: Snapshot) -> None:
    """Check that each edge has its own thread, a stack and names, and leads to the next edge."""
    assert len({edge.tid for edge in cycle.edges}) == len(cycle.edges)
    assert cycle.locks == tuple(edge.from_ for edge in cycle.edges)
    names = {lock.id: lock.name for lock in snapshot.locks}
    for edge, following in zip(cycle.edges, (*cycle.edges[1:], cycle.edges[0]), strict=True):
        if not cycle.classes:
            assert edge.to == following.from_
        assert {edge.from_, edge.to} <= set(names)
        stack = snapshot.stacks[edge.stack]
        assert all(frame.function for frame in stack if frame.module != requirements.LIBC)
        assert snapshot.sites[edge.site].function
        assert edge.tid


def test_each_order_has_its_stack_and_its_call_site(orders: ScanScenario) -> None:
    snapshot = orders("inversion")
    (cycle,) = snapshot.lock_order
    names = {lock.id: lock.name for lock in snapshot.locks}
    assert {names[lock] for lock in cycle.locks} == {"g_a", "g_b"}
    for edge in cycle.edges:
        wanted = "a_b" if names[edge.from_] == "g_a" else "b_a"
        functions = [frame.function for frame in snapshot.stacks[edge.stack]]
        assert functions[:3] == ["take", "both", wanted]
        assert snapshot.sites[edge.site].function == "take"


def test_a_cycle_of_lock_classes_names_the_classes(orders: ScanScenario) -> None:
    snapshot = orders("classes", of_classes=True)
    assert potential(snapshot) == [(LOW, 2)]
    (cycle,) = snapshot.lock_order
    check_cycle(cycle, snapshot)
    assert {name.removeprefix("orders_of_other_locks.c: ") for name in cycle.classes} == {
        "g_pool[].first",
        "g_pool[].second",
    }
    assert "class" in cycle.why


def test_a_cycle_of_lock_classes_is_reported_only_on_request(orders: ScanScenario) -> None:
    snapshot = orders("classes")
    assert (potential(snapshot), snapshot.lock_order_unproven) == ([], 0)


def test_medium_confidence_has_a_reason(orders: ScanScenario) -> None:
    assert "writer" in orders("readers_behind_writers").lock_order[0].why


@pytest.mark.parametrize("level", ["counting", "blocks", "all"])
def test_every_level_above_counting_records_lock_orders(level: str, orders: ScanScenario) -> None:
    wanted = [] if level == "counting" else [(HIGH, 2)]
    assert potential(orders("inversion", level=level)) == wanted


def test_a_variable_turns_lock_orders_off(orders: ScanScenario) -> None:
    assert potential(orders("inversion", environment={"LOCKTOP_ORDER": "0"})) == []


def test_the_last_snapshot_of_a_killed_process_has_the_lock_orders(
    start_target: StartTarget,
) -> None:
    target = start_target("mutex_orders", "inversion")
    target.expect("ok")
    source = attach(target.pid)
    try:
        source.scan()
        target.kill()
        assert potential(source.scan(resolve=True)) == [(HIGH, 2)]
    finally:
        source.close()


def test_the_text_report_has_potential_deadlocks_after_the_locks(
    start_target: StartTarget,
) -> None:
    target = start_target("orders_of_other_locks", "readers_that_write")
    target.expect("ok")
    done = tool.run("snapshot", "-p", target.pid, "--format", "text")
    page = done.stdout[done.stdout.index("POTENTIAL DEADLOCKS") :]
    assert "high confidence" in page
    assert "wanted rwlock g_s while it held rwlock g_r, to read," in page
    assert "read_write_r_s" in page
    assert done.stdout.index("LOCKS") < done.stdout.index("POTENTIAL")


def test_a_suppression_file_leaves_out_an_order_and_needs_a_reason(
    start_target: StartTarget, tmp_path: Path
) -> None:
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
