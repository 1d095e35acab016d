"""The unit of the throughput: the wanted one, frequent marks, or rounds."""

from __future__ import annotations

import pytest
from unit.builders.simulated import US, hold

from locktop.collector.extensions.whatif.analysis.evidence import Evidence
from locktop.collector.extensions.whatif.analysis.throughput import ROUNDS, counted, marks_of
from locktop.collector.extensions.whatif.model import ThroughputUnit, UnitKind
from locktop.collector.model import MarkRecord

SPAN_US = 100_000


def evidence(counts: dict[str, int], losses: tuple[tuple[int, int], ...] = ()) -> Evidence:
    """Return a span with so many marks of each text, all over it."""
    marks = [
        MarkRecord(1, (SPAN_US * number // count) * US + 1, text)
        for text, count in counts.items()
        for number in range(count)
    ]
    return Evidence(
        from_ns=0,
        to_ns=SPAN_US * US,
        records=[hold(1, 65, 1000 * number, 300) for number in range(100)],
        signals=(),
        samples=(),
        times={},
        losses=losses,
        cpus=2,
        marks=sorted(marks, key=lambda one: one.time_ns),
    )


def marks(text: str) -> ThroughputUnit:
    return ThroughputUnit(kind=UnitKind.MARKS, mark=text)


@pytest.mark.parametrize(
    ("counts", "wanted", "unit", "number"),
    [
        ({}, None, ROUNDS, 0),
        ({"commit": 100}, None, marks("commit"), 100),
        ({"commit": 99}, None, ROUNDS, 0),
        ({"reload": 20, "commit": 300, "abort": 250}, None, marks("commit"), 300),
        ({"reload": 20, "commit": 300}, marks("reload"), marks("reload"), 20),
        ({"commit": 300}, ROUNDS, ROUNDS, 0),
        ({}, marks("commit"), marks("commit"), 0),
    ],
)
def test_the_unit(
    counts: dict[str, int], wanted: ThroughputUnit | None, unit: ThroughputUnit, number: int
) -> None:
    found = counted(evidence(counts), wanted, 4, 1000, 100)
    assert found.unit == unit
    assert len(found.evidence.marks) == sum(len(one.marks) for one in found.parts) == number
    assert {one.text for one in found.evidence.marks} == ({unit.mark} if number else set())


def test_marks_between_the_parts_do_not_count() -> None:
    """In the first half of the span, all records were lost."""
    lossy = evidence({"commit": 150}, losses=((0, SPAN_US * US // 2),))
    assert counted(lossy, None, 2, 1000, 100).unit == ROUNDS
    assert counted(lossy, None, 2, 1000, 75).unit == marks("commit")


def test_marks_that_no_text_equals_are_those_that_begin_so() -> None:
    texts = ("commit 1", "commit", "commit 2", "abort 1", "abort 2", "recommit")
    given = [MarkRecord(1, number, text) for number, text in enumerate(texts)]
    assert [one.text for one in marks_of(given, "commit")] == ["commit"]
    assert [one.text for one in marks_of(given, "abort")] == ["abort 1", "abort 2"]
    assert [one.text for one in marks_of(given, "commit ")] == ["commit 1", "commit 2"]
    assert marks_of(given, "mit") == []
