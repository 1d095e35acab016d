"""Deadlocks as drawings: their nodes and arrows, in the languages of Graphviz and Mermaid."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from support.pages import page
from unit.builders.deadlock_reports import ACCOUNTS, ALICE, abandoned, follower, ring, site

from locktop.collector.model import DeadlockReport
from locktop.collector.render.graph import dot, mermaid
from locktop.collector.render.graph.deadlock_graph import graph

LEFT = abandoned(taken_at=site("credit", 21), is_lower_bound=True)


@pytest.mark.parametrize(
    ("name", "found"),
    [("graph-ring", (ring(),)), ("graph-abandoned", (LEFT,)), ("graph-none", ())],
)
def test_the_drawings_of_deadlocks(name: str, found: tuple[DeadlockReport, ...]) -> None:
    assert dot.render(found) == page(f"{name}-dot")
    assert mermaid.render(found) == page(f"{name}-mermaid")


@pytest.mark.parametrize(("count", "last"), [(30, "thread 129"), (31, "1 thread more behind")])
def test_a_drawing_has_thirty_threads_behind_a_circle(count: int, last: str) -> None:
    behind = tuple(follower(100 + n, "", ACCOUNTS) for n in range(count))
    made = graph([replace(ring(), behind=behind)])
    assert made.nodes[-1].lines == (last,)


def test_a_lock_of_a_thread_that_is_not_drawn_has_no_arrow_to_the_thread() -> None:
    behind = (follower(100, "late", ACCOUNTS, holders=(ALICE, 99)),)
    made = graph([replace(ring(), behind=behind)])
    lines = [(arrow.start, arrow.end, *arrow.lines) for arrow in made.arrows[4:]]
    assert lines == [
        ("thread_100", "lock_1", "waits 2.00 s"),
        ("lock_1", "thread_11", "held by"),
    ]
