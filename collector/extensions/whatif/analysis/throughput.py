"""Chooses what is counted as throughput: marks of the program, a lock's acquisitions, or rounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from locktop.collector.extensions.whatif.analysis.evidence import Evidence, parts
from locktop.collector.extensions.whatif.model import ThroughputUnit, UnitKind
from locktop.collector.model import MarkRecord

ROUNDS = ThroughputUnit(kind=UnitKind.ROUNDS)


class Counted(NamedTuple):
    """The unit of the throughput, and the evidence with the marks of this unit alone."""

    unit: ThroughputUnit
    evidence: Evidence
    parts: Sequence[Evidence]


def counted(
    evidence: Evidence,
    wanted: ThroughputUnit | None,
    count: int,
    max_records: int,
    min_marks: int,
) -> Counted:
    """Choose the unit, and cut the span.

    Without a wanted unit, each mark with the most frequent text is a transaction. If the parts
    have fewer of these marks than ``min_marks``, each thread has its own rounds.

    Args:
        evidence: of the span, with all marks.
        wanted: the unit; None: the likely one.
        count: see parts().
        max_records: see parts().
        min_marks: the fewest marks that are transactions without being asked for.
    """
    unit = wanted or _frequent(evidence.marks)
    marks = marks_of(evidence.marks, unit.mark) if unit.kind is UnitKind.MARKS else []
    only = replace(evidence, marks=marks)
    counted_parts = parts(only, count, max_records)
    if wanted is None and marks and sum(len(part.marks) for part in counted_parts) < min_marks:
        return counted(evidence, ROUNDS, count, max_records, min_marks)
    return Counted(unit, only, counted_parts)


def marks_of(marks: Sequence[MarkRecord], text: str) -> list[MarkRecord]:
    """Return the marks with a text. If there are none, return those whose text begins so."""
    same = [mark for mark in marks if mark.text == text]
    return same or [mark for mark in marks if mark.text.startswith(text)]


def _frequent(marks: Sequence[MarkRecord]) -> ThroughputUnit:
    if not marks:
        return ROUNDS
    [(text, _)] = Counter(mark.text for mark in marks).most_common(1)
    return ThroughputUnit(kind=UnitKind.MARKS, mark=text)
