"""Predictions as a page of their own, and as a section of the text report."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders.predicted import FOUND, LOCK, SNAPSHOT

from locktop.collector.extensions.whatif import text_report
from locktop.collector.extensions.whatif.model import (
    Change,
    ChangeKind,
    RefusedChange,
    ThroughputUnit,
    UnitKind,
    WhatIf,
    WhatIfRefusal,
)
from locktop.collector.model import Snapshot
from locktop.collector.render.text import report

REFUSED = (
    RefusedChange(Change(ChangeKind.THREADS, 8.0, group="pool"), WhatIfRefusal.DEPENDENT),
    RefusedChange(Change(ChangeKind.HOLD, 3.0, LOCK.id), WhatIfRefusal.STOPPED),
)
TITLE = "WHAT A CHANGE WOULD GAIN, from 10.0 s of records until 2026-11-21T09:59:00.000Z"


def section(snapshot: Snapshot, width: int = 100) -> list[str]:
    """Return the lines of the section of the report."""
    lines = report.render(snapshot, width=width).split("\n")
    begin = lines.index(TITLE)
    return lines[begin : lines.index("", begin)]


def test_the_report_has_the_predictions_and_their_time() -> None:
    lines = section(replace(SNAPSHOT, sections={"whatif": FOUND}))
    assert lines[1] == (
        "  throughput   5,821 rounds a second, each from a call of a thread to its next call of"
        " this kind"
    )
    rows = [" ".join(line.split()) for line in lines]
    assert f"{LOCK.name}: split by 8 +250 % +217 to +278 % +290 %" in rows
    assert any(line.startswith("  worker: 4 threads") for line in lines)
    assert any("70.0 %" in line and "████████" in line and "50.0 %" in line for line in lines)


def test_a_report_without_predictions_has_no_section() -> None:
    assert "WHAT A CHANGE" not in report.render(SNAPSHOT)


def test_the_section_tells_a_refusal() -> None:
    refused = replace(FOUND, refusal=WhatIfRefusal.FEW, predictions=())
    lines = section(replace(SNAPSHOT, sections={"whatif": refused}))
    said = "  No prediction (few rounds): the process used its locks too seldom in this time;"
    assert any(line.startswith(said) for line in lines)
    assert not any("at most" in line for line in lines)


def words(found: WhatIf) -> str:
    """Return the words of the page, without its line breaks."""
    return " ".join(text_report.render(found, SNAPSHOT).split())


def test_refused_changes_are_listed_below_the_predictions() -> None:
    text = words(replace(FOUND, refused=REFUSED))
    assert f"{LOCK.name}: split by 8 +250 %" in text
    assert "pool: 8 threads: no prediction (dependent threads): the threads of this group" in text
    assert f"{LOCK.name}: hold 3 times as long: no prediction (stopped replay): after the" in text
    assert "No prediction (" not in text


def test_each_change_is_listed_if_all_are_refused() -> None:
    found = replace(FOUND, refusal=REFUSED[0].reason, predictions=(), refused=REFUSED)
    text = words(found)
    assert text.count("no prediction (") == len(REFUSED)
    assert "No prediction (" not in text
    assert "likely range" not in text


def test_without_replayed_parts_there_is_no_line_about_the_replay() -> None:
    found = replace(FOUND, parts=0, rounds_per_s=0.0, replayed=0.0, pressure=(), predictions=())
    text = words(replace(found, refusal=WhatIfRefusal.FEW))
    assert "throughput 0 rounds a second" in text
    assert "replay " not in text
    assert "-100 %" not in text


@pytest.mark.parametrize(
    ("replayed", "said"),
    [
        (1.054, "the replay has 5.4 % more throughput than was recorded"),
        (0.9498, "the replay has 5.1 % less throughput than was recorded"),
        (7.0, "the replay has 600 % more throughput than was recorded"),
    ],
)
def test_a_replay_that_differs_says_by_how_much(replayed: float, said: str) -> None:
    found = replace(FOUND, replayed=replayed, predictions=(), refusal=WhatIfRefusal.REPLAY)
    text = words(found)
    assert f"No prediction (replay): without a change, {said}; at most 5 % more or less" in text
    assert "record again, or name a lock with --throughput." in text
    of_lock = replace(found, unit=ThroughputUnit(kind=UnitKind.LOCK, lock=LOCK.id))
    assert "is allowed; record again." in words(of_lock)


def test_more_cpus_than_the_process_may_use_have_a_note() -> None:
    [*_, one] = FOUND.predictions
    more = replace(one, change=Change(ChangeKind.CPUS, 2.0))
    text = words(replace(FOUND, cpus=1, predictions=(more,)))
    assert "The process may use 1 CPU. Predictions for more CPUs were right for threads" in text
    assert "The process may use" not in words(replace(FOUND, cpus=2, predictions=(more,)))


def test_rows_of_two_shares_of_readers_differ_at_80_columns() -> None:
    one = FOUND.predictions[0]
    changes = [Change(ChangeKind.RW, share, LOCK.id) for share in (0.9, 0.5)]
    found = replace(FOUND, predictions=tuple(replace(one, change=each) for each in changes))
    page = text_report.render(found, SNAPSHOT, 80)
    assert f"{LOCK.name}: rwlock, 90 % reads" in page
    assert f"{LOCK.name}: rwlock, 50 % reads" in page


def test_the_heading_says_of_what_the_waits_are_a_share() -> None:
    assert "waits, of all threads' time" in text_report.render(FOUND, SNAPSHOT, 70)


@pytest.mark.parametrize("width", [80, 100])
def test_a_long_name_breaks_no_row(width: int) -> None:
    found = replace(FOUND, names={LOCK.id: "a_long_name_of_a_lock_" * 9})
    lines = section(replace(SNAPSHOT, sections={"whatif": found}), width)
    assert max(map(len, lines)) <= width
    page = text_report.render(found, SNAPSHOT, width).splitlines()
    assert max(map(len, page)) <= width
    for text in (lines, page):
        assert sum("a_long_name" in line or "_of_a_lock_" in line for line in text) == 3
        assert sum(line.rstrip().endswith("+290 %") for line in text) == 1


def test_the_locks_of_the_time_of_the_predictions_are_named() -> None:
    lines = section(replace(SNAPSHOT, locks=(), sections={"whatif": FOUND}))
    assert any(LOCK.name in line for line in lines)
    assert not any(f"lock {LOCK.id}" in line for line in lines)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("contended", "contended", "; the level is back"),
        ("contended", "counting", "; the level is counting now"),
        ("counting", "all", "; the level is all now"),
        ("all", "all", ""),
        ("contended", "", ""),
        ("", "", ""),
    ],
)
def test_the_page_says_what_became_of_the_level(before: str, after: str, said: str) -> None:
    found = replace(FOUND, recording_cost=0.97, level_before=before, level_after=after)
    cost = "cost         the recording changed the acquisitions a second by -3 %"
    assert f"{cost}{said}" in text_report.render(found, SNAPSHOT).splitlines()


def test_the_page_has_the_level_without_a_cost() -> None:
    found = replace(FOUND, level_before="contended", level_after="contended")
    assert "cost         the level is back" in text_report.render(found, SNAPSHOT).splitlines()
    assert "cost" not in text_report.render(FOUND, SNAPSHOT)
