"""Programs with more lock orders, or more ways into one order, than a table of call sites holds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from support import tool
from support.targets import StartTarget, Target

from locktop.collector.model import Confidence, OrderEdge, Snapshot
from locktop.collector.render.text import report
from locktop.collector.sources.attach import attach
from locktop.collector.sources.base import Source
from locktop.tui.views.status import Pace, status_line
from locktop.tui.views.styled_line import line_text

LEFT_OUT = "some lock orders found no room: potential deadlocks may be missing"


def scan(target: Target) -> Snapshot:
    source: Source = attach(target.pid)
    try:
        return source.scan(resolve=True)
    finally:
        source.close()


def run_to_end(start_target: StartTarget, scenario: str) -> Target:
    target = start_target("wrapped_locks", scenario)
    target.expect("ok")
    return target


def functions(snapshot: Snapshot, edge: OrderEdge) -> set[str]:
    return {frame.function for frame in snapshot.stacks[edge.stack]}


def names(snapshot: Snapshot, locks: Sequence[int]) -> set[str]:
    return {lock.name.rpartition(":")[2].strip() for lock in snapshot.locks if lock.id in locks}


def test_an_inversion_behind_thousands_of_orders_of_one_function_is_found(
    start_target: StartTarget,
) -> None:
    snapshot = scan(run_to_end(start_target, "inversion_after_many"))
    (cycle,) = snapshot.lock_order
    assert cycle.confidence is Confidence.HIGH
    assert names(snapshot, cycle.locks) == {"g_locks[398]", "g_locks[399]"}
    assert not snapshot.lock_orders_left_out
    assert not snapshot.lock_order_search_cut


def test_thousands_of_orders_without_an_inversion_are_no_finding(
    start_target: StartTarget,
) -> None:
    snapshot = scan(run_to_end(start_target, "many_in_order"))
    assert (snapshot.lock_order, snapshot.lock_order_unproven) == ((), 0)
    assert not snapshot.lock_orders_left_out


@pytest.mark.parametrize(("job", "count"), [("inversion", 1), ("none", 0)])
def test_locks_of_lock_guards_without_optimisation(
    start_target: StartTarget, job: str, count: int
) -> None:
    target = start_target("lock_guards", job, flags=("-O0",))
    target.expect("ok")
    snapshot = scan(target)
    assert len(snapshot.lock_order) == count
    for cycle in snapshot.lock_order:
        assert names(snapshot, cycle.locks) == {"g_locks[398]", "g_locks[399]"}
        assert cycle.confidence is Confidence.HIGH


def test_every_output_says_that_orders_were_left_out(start_target: StartTarget) -> None:
    target = run_to_end(start_target, "too_many")
    snapshot = scan(target)
    assert snapshot.lock_order == ()
    assert snapshot.lock_orders_left_out
    assert LEFT_OUT in report.render(snapshot)
    assert "potential deadlocks unknown (key d)" in line_text(
        status_line(snapshot, Pace(2.0, 2.0), 200)
    )
    assert tool.snapshot(target.pid)["lock_orders_left_out"] is True
    for form in ("text", "line", "json"):
        done = tool.run("check", "-p", target.pid, "--potential", "--format", form)
        assert LEFT_OUT in done.stdout
        assert done.returncode == 3
    assert LEFT_OUT not in tool.run("check", "-p", target.pid).stdout


def test_another_stack_finds_room_when_one_stack_has_taken_what_it_may(
    start_target: StartTarget,
) -> None:
    snapshot = scan(run_to_end(start_target, "inversion_after_too_many"))
    assert snapshot.lock_orders_left_out
    (cycle,) = snapshot.lock_order
    assert names(snapshot, cycle.locks) == {"g_locks[398]", "g_locks[399]"}


def test_each_edge_has_the_stack_of_its_thread(start_target: StartTarget) -> None:
    snapshot = scan(run_to_end(start_target, "two_ways"))
    (cycle,) = snapshot.lock_order
    (way,) = cycle.ways
    found = set()
    for edges in (cycle.edges, way.edges):
        (up,) = (edge for edge in edges if "rebalance" not in functions(snapshot, edge))
        (found_way,) = functions(snapshot, up) & {"load", "store"}
        found.add((up.tid, found_way))
    tids = {name: tid for tid, name in found}
    assert set(tids) == {"load", "store"}
    assert tids["load"] != tids["store"]
    assert "the same in 1 other way, by other stacks" in report.render(snapshot)


@pytest.mark.parametrize(
    ("lines", "remaining"),
    [
        (["load"], "store"),
        (["store"], "load"),
        (["load", "store"], None),
        (["rebalance"], None),
        (["load AND rebalance"], "store"),
        (["load AND store"], "load"),
    ],
)
def test_a_suppression_hides_an_inversion_only_if_it_hides_every_way(
    start_target: StartTarget, tmp_path: Path, lines: list[str], remaining: str | None
) -> None:
    target = run_to_end(start_target, "two_ways")
    rules = tmp_path / "rules"
    rules.write_text("".join(f"{line}  # never at the same time\n" for line in lines))
    document = tool.snapshot(target.pid, "--suppressions", str(rules))
    assert document["lock_order_suppressed"] == (remaining is None)
    assert len(document["lock_order"]) == (remaining is not None)
    for cycle in document["lock_order"]:
        names_in_stacks = {
            frame["function"]
            for edge in cycle["edges"]
            for frame in document["stacks"][str(edge["stack"])]
        }
        assert remaining in names_in_stacks
