"""The result of a gate as text."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders.gate_results import (
    HOSTILE,
    LONGER,
    NOTHING,
    SAME,
    STEADY,
    UNCLEAR,
    WORSE,
    comparison,
    result,
)

from locktop.collector.extensions.gate import text_report
from locktop.collector.extensions.gate.model import GateOutcome, GateResult


def first_line(whole: GateResult) -> str:
    return text_report.render(whole, 1000).partition("\n")[0]


def test_the_first_line_has_the_answer() -> None:
    assert first_line(WORSE).startswith("worse: the hold of mutex g_lock is longer by +30.0 %")
    assert first_line(SAME).startswith("same: 1 lock class compared; growth above +")
    assert first_line(UNCLEAR).startswith(
        "not enough data: the noise at the hold of mutex g_lock may hide +"
    )
    assert first_line(NOTHING) == "nothing ran: run 1 of A: no such program: x"
    stopped = replace(SAME, outcome=GateOutcome.INTERRUPTED)
    assert first_line(stopped) == "interrupted: there is no answer after 6 pairs of runs"


def test_a_red_control_is_in_the_text() -> None:
    rising = [1e-3 * 1.3**number for number in range(12)]
    red = result(comparison(rising, rising))
    assert first_line(red).startswith("red control: the hold of mutex g_lock differs by +")
    assert "control red: runs of A differ from runs of A" in text_report.render(red)


def test_the_table_has_each_class() -> None:
    lines = [" ".join(line.split()) for line in text_report.render(WORSE).split("\n")]
    [row] = [line for line in lines if line.startswith("mutex g_lock")]
    assert row.startswith("mutex g_lock 1.00 ms 1.30 ms +30.0 %")
    assert row.endswith("50.0 % worse")
    assert "B X=1 cmd --new" in lines
    assert "left out: cmd" in lines


def test_waits_stand_in_a_table_that_does_not_decide() -> None:
    text = text_report.render(SAME)
    assert "Mean wait of an acquisition (not part of the answer)" in text
    assert text.rstrip().split("\n")[-3].endswith("(unclear)")


@pytest.mark.parametrize("width", [80, 100])
def test_a_hostile_name_stays_text(width: int) -> None:
    text = text_report.render(result(comparison(STEADY, LONGER, HOSTILE), name=HOSTILE), width)
    assert text.replace("\n", "").isprintable()
    assert max(map(len, text.split("\n"))) <= width
