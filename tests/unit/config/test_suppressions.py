"""Potential deadlocks that a file leaves out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace
from unit.builders import scenarios

from locktop.collector.config import suppressions
from locktop.collector.errors import LocktopError
from locktop.collector.model import Confidence, Frame, OrderCycle, OrderEdge, OrderWay, Snapshot
from locktop.collector.render.documents import snapshot_codec
from locktop.collector.render.text import report


def frame(function: str) -> Frame:
    return Frame(1, function, "bank.cc", 7, "bank", 1)


def one_cycle() -> Snapshot:
    return replace(
        scenarios.normal(),
        lock_order=(
            OrderCycle((1, 2), (OrderEdge(1, 2, 4711, 61, 0x51), OrderEdge(2, 1, 4712, 62, 0x52))),
        ),
        stacks={
            61: (frame("take"), frame("Account::transfer(Account&, int)"), frame("main")),
            62: (frame("audit::{lambda()#1}::operator()() const"), frame("audit")),
        },
        sites={0x51: frame("std::map<int, int>::operator[](int)"), 0x52: frame("audit")},
    )


@pytest.mark.parametrize(
    ("line", "left_out"),
    [
        ("take", True),
        ("tak", False),
        ("ta?e", True),
        ("Account::transfer", True),
        ("Account::transfer(Account&, int)", True),
        ("Account::*", True),
        ("*transfer*", True),
        ("take AND audit", True),
        ("take AND close_book", False),
        ("audit::{lambda()#1}::operator()() const", True),
        ("std::map<*>::operator[]", True),
        ("std::map<*>::operator(]", False),
    ],
)
def test_a_suppression_line_leaves_out_matching_cycles(line: str, left_out: bool) -> None:
    seen = suppressions.apply(one_cycle(), suppressions.parse(f"{line}  # because", "x"))
    assert (seen.lock_order == ()) == left_out
    assert seen.lock_order_suppressed == left_out
    assert snapshot_codec.document(seen)["lock_order_suppressed"] == left_out
    assert ("1 left out" in report.render(seen)) == left_out


def two_ways(left_out: bool = False) -> Snapshot:
    """A cycle with a second way of low confidence, by another thread's stack."""
    (cycle,) = one_cycle().lock_order
    other = (OrderEdge(1, 2, 4713, 63, 0x51), cycle.edges[1])
    way = OrderWay(other, Confidence.LOW, "who knows")
    return replace(
        one_cycle(),
        lock_order=(
            replace(cycle, ways=(way,), ways_left_out=left_out),
            OrderCycle((8, 9), (), Confidence.MEDIUM),
        ),
        stacks={**one_cycle().stacks, 63: (frame("take"), frame("close_book"))},
    )


def seen_stacks(seen: Snapshot) -> list[list[int]]:
    return [[edge.stack for edge in cycle.edges] for cycle in seen.lock_order]


@pytest.mark.parametrize(
    ("lines", "stacks"),
    [
        ("close_book # x", [[61, 62], []]),
        ("Account::transfer # x", [[], [63, 62]]),
        ("Account::transfer AND close_book # x", [[61, 62], []]),
        ("Account::transfer # x\nclose_book # x", [[]]),
        ("audit # x", [[]]),
    ],
)
def test_each_way_must_be_suppressed(lines: str, stacks: list[list[int]]) -> None:
    seen = suppressions.apply(two_ways(), suppressions.parse(lines, "x"))
    assert seen_stacks(seen) == stacks
    assert seen.lock_order_suppressed == (len(stacks) == 1)


def test_the_remaining_way_has_its_own_confidence() -> None:
    seen = suppressions.apply(two_ways(), suppressions.parse("Account::transfer # x", "x"))
    cycle = seen.lock_order[1]
    assert (cycle.confidence, cycle.why, cycle.ways) == (Confidence.LOW, "who knows", ())


def test_a_cycle_whose_ways_are_not_all_known_is_not_suppressed() -> None:
    seen = suppressions.apply(two_ways(left_out=True), suppressions.parse("audit # x", "x"))
    assert len(seen.lock_order) == 2
    assert seen.lock_order_suppressed == 0


def test_comments_and_empty_lines_suppress_nothing() -> None:
    assert suppressions.parse("# why\n\n  # more\n", "x") == ()
    (rule,) = suppressions.parse("\ntake # it cannot # be\n", "x")
    assert rule.reason == "it cannot # be"


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("take", "reason"),
        ("take #", "reason"),
        ("take#why", "reason"),
        ("* # all", "name"),
        ("take AND  # one is missing", "name"),
        (" # comment\nput AND ?? # x", "name"),
    ],
)
def test_a_malformed_suppression_is_named_by_its_line(wrong: str, says: str) -> None:
    with pytest.raises(LocktopError, match=rf"^x:\d: .*{says}") as raised:
        suppressions.parse(f"put # fine\n{wrong}", "x")
    assert f"x:{1 + len(wrong.splitlines())}:" in str(raised.value)


def test_the_suppressions_file_lies_in_the_current_directory_or_at_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)  # root reads only a file that it names
    assert suppressions.load() == ()
    Path(suppressions.FILE).write_text("take # because\n")
    assert len(suppressions.load()) == 1
    with pytest.raises(LocktopError, match="no file"):
        suppressions.load(tmp_path / "none")
    with pytest.raises(LocktopError, match="directory"):
        suppressions.load(tmp_path)
