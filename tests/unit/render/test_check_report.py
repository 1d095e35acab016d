"""The first line of ``locktop check --potential`` says what it cannot know."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders import scenarios

from locktop.collector.model import Frame, Kind, Snapshot
from locktop.collector.render import check_report
from locktop.collector.render.words import verdict
from locktop.tui.commands import check

ORDERS = "lock orders"


def first_line(snapshot: Snapshot, potential: bool = True) -> str:
    return check_report.lines(snapshot, potential)[0]


def test_nothing_is_added_if_all_orders_are_known() -> None:
    assert ORDERS not in first_line(scenarios.normal())
    assert check.exit_status(scenarios.normal(), potential=True) == 0


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("lock_orders_left_out", "some lock orders found no room"),
        ("lock_order_search_cut", "the search ended at its limit"),
    ],
)
def test_what_may_be_missing_is_said(key: str, text: str) -> None:
    snapshot = replace(scenarios.normal(), **{key: True})
    assert text in first_line(snapshot)
    assert check_report.document(snapshot, potential=True)[key] is True
    assert check.exit_status(snapshot, potential=True) == check.DOUBTFUL
    assert check.exit_status(snapshot) == 0
    assert text not in first_line(snapshot, potential=False)
    assert key not in check_report.document(snapshot)


def test_a_process_without_recorded_orders_has_no_clean_answer() -> None:
    sampled = replace(scenarios.normal(), source="proc", level="sampled")
    assert "lock orders are not known without the library" in first_line(sampled)
    counting = replace(scenarios.normal(), level="counting")
    assert "lock orders are not recorded at level counting" in first_line(counting)
    assert check.exit_status(counting, potential=True) == check.DOUBTFUL


def sampled_wait(duration_s: float, is_lower_bound: bool = False) -> Snapshot:
    """A thread waits for a lock whose holder is not known."""
    calm = scenarios.normal()
    thread = next(one for one in calm.threads if one.waiting_for is not None)
    assert thread.waiting_for is not None
    frame = Frame(0x1000, "takes", "/srv/app.py", 23, "python", 0)
    wait = replace(
        thread.waiting_for, kind=Kind.SEM, duration_s=duration_s, holders=(), idle=False,
        stack=77, is_lower_bound=is_lower_bound,
    )  # fmt: skip
    threads = tuple(
        replace(one, waiting_for=wait if one is thread else None) for one in calm.threads
    )
    return replace(calm, threads=threads, stacks={**calm.stacks, 77: (frame,)})


def test_a_long_wait_of_an_unknown_holder_has_its_stack() -> None:
    long = sampled_wait(12.5)
    lines = check_report.lines(long)
    assert lines[0].startswith("cannot tell whether there is a deadlock")
    assert lines[2].endswith("for 12.5 s")
    assert lines[3] == "    0 takes at /srv/app.py:23"
    document = check_report.document(long)
    (thread,) = document["threads"]
    assert document["stacks"]["77"][0]["function"] == "takes"
    assert [lock["id"] for lock in document["locks"]] == [thread["waiting_for"]["lock"]]
    assert len(check_report.lines(sampled_wait(9.9))) == 1


def test_only_a_wait_from_before_the_first_scan_may_be_longer_than_known() -> None:
    assert verdict.may_be_long(sampled_wait(0.3, is_lower_bound=True))
    assert not verdict.may_be_long(sampled_wait(0.3))
    assert not verdict.may_be_long(sampled_wait(10.0, is_lower_bound=True))
    assert not verdict.may_be_long(scenarios.normal())
