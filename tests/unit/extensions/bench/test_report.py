"""The bench's arithmetic and tables, from figures made by hand."""

from __future__ import annotations

import pytest

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.bench import costs, report, runner, tables
from locktop.collector.extensions.bench.budgets import Budget, check_growth, check_row, verdicts
from locktop.collector.extensions.bench.costs import CostRow, Round, Spread
from locktop.collector.extensions.bench.machine_info import MachineInfo
from locktop.collector.extensions.bench.runner import FLAVOURS, UNPREPARED, Case, RunFigures
from locktop.collector.extensions.bench.trace_growth import Growth

MUTEX = Case("mutex", "lock, unlock", 1)
BARRIER = Case("barrier", "two threads meet", 2)
GROWTH = (
    Growth("5 % wait", "contended", 40000, 2000, 2000),
    Growth("5 % wait", "blocks", 40000, 2000, 4000),
    Growth("5 % wait", "all", 40000, 2000, 40000),
)


def a_round(unprepared_ns: float, **times: float) -> Round:
    """A round; ``times`` has the ratio of a flavour to the unprepared run, by default 1."""
    figures = {name: unprepared_ns * times.get(name, 1.0) for name in FLAVOURS}
    return {name: RunFigures(ns, ns * 2.5, 2.5e9, 9.0) for name, ns in figures.items()}


def row_of(found: costs.Costs, flavour: str) -> CostRow:
    return next(row for row in found.rows if row.flavour == flavour)


def test_the_spread_is_that_of_the_rounds() -> None:
    assert costs.spread([7.0]) == Spread(7.0, 7.0, 7.0)
    assert costs.spread([5.0, 1.0, 3.0, 2.0, 4.0]) == Spread(2.0, 3.0, 4.0)
    assert costs.spread(iter([1.0, 2.0])) == Spread(1.25, 1.5, 1.75)


def test_ratios_are_taken_within_a_round() -> None:
    """A machine that is ten times slower in one round changes the times, not the ratio."""
    found = costs.summary({MUTEX: [a_round(20, all=4), a_round(200, all=4), a_round(20, all=4)]})
    row = row_of(found, "all")
    assert row.ratio == Spread(4, 4, 4)
    assert row.ns == Spread(80, 80, 440)
    assert row.ticks == Spread(200, 200, 1100)
    assert row.more_ns == Spread(60, 60, 330)
    assert row_of(found, UNPREPARED).ratio == Spread(1, 1, 1)
    assert (found.rounds, found.ticks_hz, found.ticks_read_ns) == (3, 2.5e9, 9.0)


def test_a_round_runs_every_flavour_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[tuple[Case, str]] = []
    progress: list[tuple[int, int]] = []

    def cost(case: Case, flavour: str, seconds: float) -> RunFigures:
        assert seconds == 0.5
        runs.append((case, flavour))
        return RunFigures(1, 1, 1, 1)

    monkeypatch.setattr(costs, "cost", cost)
    costs.measure([MUTEX, BARRIER], 2, 0.5, lambda done, of: progress.append((done, of)))
    assert [case for case, _ in runs] == ([MUTEX] * 6 + [BARRIER] * 6) * 2
    for start in range(0, 24, 6):
        assert {flavour for _, flavour in runs[start : start + 6]} == set(FLAVOURS)
    assert runs[0][1] != runs[12][1], "another flavour begins in each round"
    assert progress == [(done, 24) for done in range(1, 25)]


def of_budget(ratio: float, more_ns: float, limit: float | None, more: float | None) -> str:
    flat = Spread(ratio, ratio, ratio)
    difference = Spread(more_ns, more_ns, more_ns)
    row = CostRow(BARRIER, "all", flat, flat, flat, difference, 0)
    budget = Budget("barrier", 2, "all", limit, more, "reads {read:.0f}")
    return check_row(budget, row, row, 9.0).missed_by


def test_a_budget_is_met_by_either_of_its_limits() -> None:
    assert of_budget(1.35, 20, 1.35, None) == ""
    assert of_budget(1.50, 20, 1.35, None) == "0.15 times unprepared"
    assert of_budget(9.99, 100, None, 100) == ""
    assert of_budget(9.99, 130, None, 100) == "30 ns"
    assert of_budget(1.50, 7, 1.35, 8) == ""
    assert of_budget(1.20, 9, 1.35, 8) == ""
    assert of_budget(1.50, 9, 1.35, 8) == "0.15 times unprepared or 1 ns"


def test_only_a_missed_budget_has_a_reason() -> None:
    found = costs.summary({MUTEX: [a_round(20, dormant=1.05, contended=1.2, blocks=3, all=5)]})
    missed = verdicts(found, ())
    assert [(one.what.split(", ")[-1], one.missed_by) for one in missed] == [
        ("dormant", ""),
        ("contended", ""),
        ("blocks", "0.70 times unprepared"),
        ("all", "1.00 times unprepared"),
    ]
    assert [bool(one.why) for one in missed] == [False, False, True, True]
    assert "9 ns" in missed[3].why
    assert missed[3].measured == "5.00 times unprepared, 80 ns more; medians 5.00, 80 ns"


def test_one_thread_counts_with_the_least_time_of_all_rounds() -> None:
    """Another process disturbs either the unprepared run or the run with the library."""
    rounds = [a_round(20, all=3), a_round(20, all=9), a_round(40, all=5), a_round(20, all=6)]
    (missed,) = [one for one in verdicts(costs.summary({MUTEX: rounds}), ()) if "all" in one.what]
    assert missed.measured == "3.00 times unprepared, 40 ns more; medians 5.50, 130 ns"
    fight = Case("mutex", "lock, unlock", 2)
    slow = [a_round(20, contended=1.1), a_round(20, contended=1.3), a_round(20, contended=1.2)]
    (missed,) = verdicts(costs.summary({fight: slow}), ())
    assert missed.measured == "1.20 times unprepared, 4 ns more"


def test_a_trace_reaches_further_back_with_fewer_records() -> None:
    contended, blocks, _ = GROWTH
    assert contended.bytes_each == 3.2
    assert check_growth(GROWTH, contended).measured == "20.0 times"
    assert check_growth(GROWTH, contended).missed_by == ""
    assert check_growth(GROWTH, blocks).missed_by == "10.0 times"
    assert [one.what for one in verdicts(None, GROWTH)] == [
        "trace, 5 % wait, contended",
        "trace, 5 % wait, blocks",
    ]


def a_report(rounds: int, growth: tuple[Growth, ...] = GROWTH) -> report.BenchReport:
    one = a_round(20, contended=1.25, all=5)
    found = costs.summary({MUTEX: [one] * rounds, BARRIER: [one] * rounds})
    here = MachineInfo("Some CPU", 2, "Linux 6.1 x86_64", "glibc 2.36", 0.5)
    return report.BenchReport(here, found, growth, tuple(verdicts(found, growth)))


def test_the_text_has_every_table() -> None:
    said = tables.text(a_report(3)).splitlines()
    assert said[0].startswith("Some CPU, 2 CPUs, Linux 6.1 x86_64, glibc 2.36; load 0.5")
    mutex = next(line.split() for line in said if line.startswith("mutex"))
    assert mutex[:4] == ["mutex", "1", "20.0", "50"]
    assert mutex[8:10] == ["1.25", "+-0.00"]
    assert any(line.startswith("mutex, 1 thread, all: ") for line in said), (
        "the reason of a missed budget"
    )


def test_one_round_claims_no_spread() -> None:
    assert "+-" not in tables.text(a_report(1))
    assert "(1.25-" not in tables.markdown(a_report(1))
    assert "1.25 (1.25-1.25)" in tables.markdown(a_report(2))


def test_markdown_is_tables_of_even_rows() -> None:
    blocks = tables.markdown(a_report(3)).split("\n\n")
    found = [block.splitlines() for block in blocks if block.startswith("|")]
    assert len(found) == 4
    for table in found:
        assert len({line.count("|") for line in table}) == 1
        assert len(table) > 2


def test_json_holds_every_figure() -> None:
    document = report.json_object(a_report(3))
    assert document["rounds"] == 3
    assert len(document["costs"]) == 2 * len(FLAVOURS)
    row = next(one for one in document["costs"] if one["flavour"] == "contended")
    assert (row["primitive"], row["threads"]) == ("mutex", 1)
    assert row["ratio"] == {"low": 1.25, "median": 1.25, "high": 1.25}
    assert document["trace"][0]["times_longer"] == 20.0
    assert document["budgets"][0]["missed_by"] == ""


def test_the_trace_alone_and_the_costs_alone() -> None:
    here = MachineInfo("Some CPU", 2, "Linux", "glibc 2.36", 0.5)
    alone = report.BenchReport(here, None, GROWTH, tuple(verdicts(None, GROWTH)))
    assert "mutex" not in tables.text(alone)
    assert report.json_object(alone)["costs"] == []
    assert "trace" not in tables.text(a_report(2, growth=()))


def test_a_size_or_names_choose_the_measured_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [MUTEX, Case("mutex", "lock, unlock", 8), BARRIER]
    measured: list[list[Case]] = []

    def measure(chosen: list[Case], *_: object) -> costs.Costs:
        measured.append(chosen)
        return costs.summary({case: [a_round(20)] for case in chosen})

    monkeypatch.setattr(runner, "cases", lambda: cases)
    monkeypatch.setattr(costs, "measure", measure)
    monkeypatch.setattr("locktop.collector.extensions.bench.trace_growth.measure", lambda: GROWTH)
    assert report.measure(report.FULL).growth == GROWTH
    assert report.measure(report.USUAL, ["mutex"]).growth == ()
    assert report.measure(report.USUAL, ["trace"]).costs is None
    assert measured == [cases, [MUTEX]]
    with pytest.raises(LocktopError, match="'pink'; there are mutex, barrier, trace"):
        report.measure(report.USUAL, ["mutex", "pink"])


def test_the_runs_differ_in_the_environment_of_the_library_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LD_PRELOAD", "/x/liblocktop.so libother.so")
    monkeypatch.setenv("LOCKTOP_LEVEL", "all")
    unprepared = runner.environment(UNPREPARED)
    assert unprepared["LD_PRELOAD"] == "libother.so"
    assert "LOCKTOP_LEVEL" not in unprepared
    for flavour in ("dormant", "contended", "blocks", "all"):
        watched = runner.environment(flavour)
        assert watched["LD_PRELOAD"].endswith("/liblocktop.so:libother.so")
        assert "/x/" not in watched["LD_PRELOAD"]
        assert watched["LOCKTOP_LEVEL"] == flavour
    assert runner.environment("nop")["LD_PRELOAD"].endswith("/liblocktop-nop.so:libother.so")
