"""Potential deadlocks that a file leaves out."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from unit.builders import scenarios

from locktop.collector.config import suppressions
from locktop.collector.errors import LocktopError
from locktop.collector.export import snapshot_codec
from locktop.collector.export.text import report
from locktop.collector.model import Frame, OrderCycle, OrderEdge, Snapshot


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
    assert suppressions.load() == ()
    Path(suppressions.FILE).write_text("take # because\n")
    assert len(suppressions.load()) == 1
    with pytest.raises(LocktopError, match="no file"):
        suppressions.load(tmp_path / "none")
    with pytest.raises(LocktopError, match="directory"):
        suppressions.load(tmp_path)
