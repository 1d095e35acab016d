"""The first line of ``locktop check --potential`` says what it cannot know."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders import scenarios

from locktop.collector.export import check_report
from locktop.collector.model import Snapshot
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
