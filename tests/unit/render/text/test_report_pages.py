"""The text report as a whole: each section, in its place, with its figures."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from support.pages import page
from unit.builders import full_report, hangs, records, scenarios

from locktop.collector.model import Snapshot
from locktop.collector.render.text import report

EVERYTHING = full_report.everything()


def brief(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot without its stacks, for a shorter page."""
    return replace(snapshot, stacks={})


@pytest.mark.parametrize(
    ("name", "snapshot", "before", "idle"),
    [
        ("report", EVERYTHING, None, True),
        ("report-interval", brief(full_report.later(EVERYTHING)), EVERYTHING, False),
        ("report-deadlock", brief(scenarios.deadlock()), None, False),
        ("report-sampled", brief(records.sampled(scenarios.normal())), None, False),
        ("report-ended", brief(scenarios.ended()), None, False),
        ("report-hang", brief(hangs.hung()), None, False),
        ("report-empty", replace(scenarios.empty(), interval_s=0.0), None, True),
    ],
)
def test_the_pages_of_the_report(
    name: str, snapshot: Snapshot, before: Snapshot | None, idle: bool
) -> None:
    assert report.render(snapshot, before, idle=idle) == page(name)
