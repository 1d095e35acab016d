"""Predictions as a page of their own, and as a section of the text report."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders.predicted import FOUND, LOCK, SNAPSHOT

from locktop.collector.export.text import report, whatif
from locktop.collector.model import Snapshot, WhatIfRefusal

TITLE = "WHAT A CHANGE WOULD GAIN, from 10.0 s of records until 2026-11-21T09:59:00.000Z"


def section(snapshot: Snapshot, width: int = 100) -> list[str]:
    """Return the lines of the section of the report."""
    lines = report.render(snapshot, width=width).split("\n")
    begin = lines.index(TITLE)
    return lines[begin : lines.index("", begin)]


def test_the_report_has_the_predictions_and_their_time() -> None:
    lines = section(replace(SNAPSHOT, whatif=FOUND))
    assert lines[1] == (
        "  throughput   5,821 a second; rounds: each thread from one call to the next one of its"
        " kind"
    )
    rows = [" ".join(line.split()) for line in lines]
    assert f"{LOCK.name}: split by 8 +250 % +217 to +278 % +290 %" in rows
    assert any(line.startswith("  worker: 4 threads") for line in lines)
    assert any("70.0 %" in line and "████████" in line and "50.0 %" in line for line in lines)


def test_a_report_without_predictions_has_no_section() -> None:
    assert "WHAT A CHANGE" not in report.render(SNAPSHOT)


def test_the_section_tells_a_refusal() -> None:
    refused = replace(FOUND, refusal=WhatIfRefusal.FEW, predictions=())
    lines = section(replace(SNAPSHOT, whatif=refused))
    assert any(line.startswith("  No prediction: the span has too few rounds;") for line in lines)
    assert not any("at most" in line for line in lines)


@pytest.mark.parametrize("width", [80, 100])
def test_a_long_name_breaks_no_row(width: int) -> None:
    found = replace(FOUND, names={LOCK.id: "a_long_name_of_a_lock_" * 9})
    lines = section(replace(SNAPSHOT, whatif=found), width)
    assert max(map(len, lines)) <= width
    page = whatif.render(found, SNAPSHOT, width).splitlines()
    assert max(map(len, page)) <= width
    for text in (lines, page):
        assert sum("a_long_name" in line or "_of_a_lock_" in line for line in text) == 3
        assert sum(line.rstrip().endswith("+290 %") for line in text) == 1


def test_the_locks_of_the_time_of_the_predictions_are_named() -> None:
    lines = section(replace(SNAPSHOT, locks=(), whatif=FOUND))
    assert any(LOCK.name in line for line in lines)
    assert not any(f"lock {LOCK.id}" in line for line in lines)
