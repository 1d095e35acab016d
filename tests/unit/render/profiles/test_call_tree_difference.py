"""The difference of two call trees, per second of each span."""

from __future__ import annotations

import pytest
from unit.builders import records
from unit.builders.time_lines import at, record, timed

from locktop.collector.analysis.span_snapshot import span_snapshot
from locktop.collector.model import Frame, Snapshot
from locktop.collector.render.profiles import call_tree_difference
from locktop.collector.render.profiles.call_tree_difference import difference, rows

SNAPSHOT = records.snapshot((), (records.lock(1, "journal"), records.lock(2, "cache")))


def span(from_ms: float, to_ms: float) -> Snapshot:
    waits = timed(
        # In the first second: 100 ms by stack 1. In the two seconds after: 600 ms by stack 2, and
        # 200 ms by stack 1.
        record(1, 100, 100, stack=1),
        *(record(2, 1000 + 100 * number, 60, stack=2) for number in range(10)),
        record(1, 1500, 200, stack=1),
        record(3, 2500, 0.5, stack=3, lock=2),
    )
    return span_snapshot(SNAPSHOT, waits, at(from_ms), at(to_ms))


def test_the_spans_count_per_second() -> None:
    root = difference(span(0, 1000), span(1000, 3000))
    assert root.before.wait == pytest.approx(0.1)
    assert root.after.wait == pytest.approx(0.80025 / 2, rel=1e-3)
    assert root.more_wait == pytest.approx(root.after.wait - 0.1)
    assert (root.before.count, root.after.count) == (1, 6)
    assert root.more_count == 5


def test_the_largest_difference_comes_first_and_chains_are_one_row() -> None:
    found = list(rows(difference(span(0, 1000), span(1000, 3000))))
    names = [[node.step.name for node in row.nodes] for row in found]
    assert names[0] == ["start_thread", "worker_main", "serve_one"] or names[0][0] == "start_thread"
    leaves = {row.node.step.name: row.node for row in found if not row.node.children}
    put = next(row for row in found if any(n.step.name == "cache_put" for n in row.nodes)).node
    assert put.before.wait == 0
    assert put.after.wait == pytest.approx(0.3)
    get = next(row for row in found if any(n.step.name == "cache_get" for n in row.nodes)).node
    assert get.more_wait == pytest.approx(0)
    assert set(leaves) == {"mutex journal", "mutex cache"}
    for row in found:
        below = [abs(child.more_wait) for child in row.node.children]
        assert below == sorted(below, reverse=True)


def test_less_waiting_is_a_negative_difference() -> None:
    root = difference(span(1000, 3000), span(0, 1000))
    assert root.more_wait < 0
    assert root.more_count < 0


def test_the_difference_of_a_span_and_itself_is_nothing() -> None:
    root = difference(span(0, 1000), span(0, 1000))
    assert all(row.node.more_wait == row.node.more_count == 0 for row in rows(root))


def test_a_stack_of_any_depth_is_cut() -> None:
    frames = tuple(Frame(n, f"f{n}", None, None, "m", n) for n in range(5000))
    deep = records.snapshot((), (records.lock(1, "journal"),), stacks={1: frames})
    found = span_snapshot(deep, timed(record(1, 0, 5)), at(0), at(10))
    row = next(iter(rows(difference(found, found))))
    assert len(row.nodes) == call_tree_difference.MAX_DEPTH
