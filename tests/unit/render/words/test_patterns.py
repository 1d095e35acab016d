"""The sentences of the contention patterns, with their figures and units."""

from __future__ import annotations

import pytest

from locktop.collector.analysis.contention_findings import (
    Convoy,
    FalseIdle,
    Finding,
    HighRate,
    LongHold,
    NoSignal,
    Oversubscribed,
    PerhapsStarved,
    Serialised,
    StarvedWriter,
    ThunderingHerd,
)
from locktop.collector.model import Pattern, PatternName
from locktop.collector.render.words.patterns import ADVICE, described, evidence

TIDS = (11, 12)


@pytest.mark.parametrize(
    ("finding", "sentence"),
    [
        (
            Convoy(1, TIDS, 3, 1234.5, 0.999, 0.8, 9e-5),
            "3 threads wait; 99 % of 1,234 acquisitions a second had to wait, and no thread held"
            " it for 80 % of that time; a hold takes 90.0 us",
        ),
        (
            Serialised(1, TIDS, 1.02, 4, 5, 0.5, 9.5),
            "held 100 % of the time; 4 of 5 threads that are not idle hold it or wait for it; 50 %"
            " of 9.5 acquisitions a second had to wait",
        ),
        (
            ThunderingHerd(1, TIDS, 4, 1000.0, 250.0, 0.002),
            "4 threads wait; 1,000 waits a second return for 250 signals or broadcasts, 4.0 for"
            " each; a woken thread uses less than 2.00 ms of a CPU",
        ),
        (
            StarvedWriter(1, TIDS, 1, 1.5, 2, 0.5),
            "1 writer waits, for up to 1.50 s; 2 threads that came later read it, for up to"
            " 500 ms so far",
        ),
        (
            StarvedWriter(1, TIDS, 2, 1.5, 1, 0.5),
            "2 writers wait, for up to 1.50 s; 1 thread that came later reads it, for up to"
            " 500 ms so far",
        ),
        (
            PerhapsStarved(1, TIDS, 1, 1.5, True, 2, 5),
            "1 writer waits, for at least 1.50 s; threads took it to read 5 times or more"
            " meanwhile; it has 2 readers now",
        ),
        (
            LongHold(1, TIDS, 0.25, False, 11, "journal", "fsync(7 -> /x)", 1, 0.2),
            "held for 250 ms by journal (11), which sleeps in fsync(7 -> /x) now; 1 thread waits"
            " for it, for up to 200 ms",
        ),
        (
            LongHold(1, TIDS, 0.25, True, 11, "", "", 2, 0.2),
            "held for at least 250 ms by thread 11, which sleeps in the kernel now; 2 threads wait"
            " for it, for up to 200 ms",
        ),
        (
            FalseIdle(1, TIDS, 1, 3.0, 1, "g_slow", False, 0.1),
            "1 thread waits for work, for up to 3.00 s; 1 thread that signals it waits for g_slow,"
            " for at least 100 ms",
        ),
        (
            FalseIdle(1, TIDS, 3, 3.0, 2, "g_slow", True, 0.1),
            "3 threads wait for work, for up to 3.00 s; 2 threads that signal it wait for g_slow or"
            " others, for at least 100 ms",
        ),
        (
            Oversubscribed(0, TIDS, 5, 1, 0.96, 1),
            "5 threads want one of 1 CPU, of which they had 1.0 lately; 1 thread waits for locks",
        ),
        (
            Oversubscribed(0, TIDS, 5, 2, 1.94, 3),
            "5 threads want one of 2 CPUs, of which they had 1.9 lately; 3 threads wait for locks",
        ),
        (
            HighRate(1, TIDS, 1_200_000.0, 9.96),
            "taken 1,200,000 times a second, of which 10.0 had to wait",
        ),
        (
            HighRate(1, TIDS, 1_200_000.0, 10.4),
            "taken 1,200,000 times a second, of which 10 had to wait",
        ),
        (
            HighRate(1, TIDS, 1_200_000.0, 3.0),
            "taken 1,200,000 times a second, of which 3 had to wait",
        ),
        (
            NoSignal(1, TIDS, 1, 12.0, 0, 1),
            "1 thread waits, for up to 12.0 s; no signal came meanwhile",
        ),
        (
            NoSignal(1, TIDS, 2, 12.0, 1, 2),
            "2 threads wait for it and 1 other condition, for up to 12.0 s; no signal came"
            " meanwhile; 1 signal came before",
        ),
        (
            NoSignal(1, TIDS, 2, 12.0, 2, 3),
            "2 threads wait for it and 2 other conditions, for up to 12.0 s; no signal came"
            " meanwhile; 2 signals came before",
        ),
    ],
)
def test_the_evidence_of_a_pattern(finding: Finding, sentence: str) -> None:
    assert evidence(finding) == sentence


def test_a_pattern_has_the_advice_of_its_finding() -> None:
    finding = HighRate(7, TIDS, 1_200_000.0, 3.0)
    name = PatternName.HIGH_RATE
    assert described([finding]) == (Pattern(name, 7, TIDS, evidence(finding), ADVICE[name]),)
