"""Formats the results of a bench as text and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from locktop.collector.extensions.bench.budgets import Verdict
from locktop.collector.extensions.bench.costs import CostRow, Costs, Spread
from locktop.collector.extensions.bench.machine_info import MachineInfo
from locktop.collector.extensions.bench.report import BenchReport
from locktop.collector.extensions.bench.runner import FLAVOURS, UNPREPARED, Case
from locktop.collector.extensions.bench.trace_growth import Growth, times_longer

_WATCHED = [flavour for flavour in FLAVOURS if flavour != UNPREPARED]


class Cells(Struct, frozen=True):
    """The cells of a table."""

    head: Sequence[str]
    lines: Sequence[Sequence[str]]
    words: int  # number of columns with words, at the left; the other columns have figures


def text(report: BenchReport) -> str:
    """Return the report as lines of aligned text."""
    parts = [_introduction(report)]
    if report.costs:
        parts.append(align(_compact(report.costs)))
        if report.costs.rounds > 1:
            parts.append("+- is half of what lies between the quartiles.")
    if report.growth:
        parts.append(align(_trace(report.growth)))
    if report.verdicts:
        parts.append(align(_verdicts(report.verdicts)))
    if reasons := [
        f"{verdict.what}: {verdict.why}" for verdict in report.verdicts if verdict.missed_by
    ]:
        parts.append("\n".join(reasons))
    return "\n\n".join(parts)


def markdown(report: BenchReport) -> str:
    """Return the report as tables in Markdown."""
    parts = [_introduction(report)]
    if report.verdicts:
        parts.append(markdown_table(_reason_table(report.verdicts)))
    if report.costs:
        parts += [
            "Times the unprepared run of the same round, median (quartiles):",
            markdown_table(_ratios(report.costs)),
            "Nanoseconds, median (quartiles) / ticks of the processor's counter, median:",
            markdown_table(_times(report.costs)),
        ]
    if report.growth:
        parts += ["How fast the trace grows:", markdown_table(_trace(report.growth))]
    return "\n\n".join(parts)


def _introduction(report: BenchReport) -> str:
    costs = report.costs
    said = machine_line(report.machine)
    if costs:
        rounds = "1 round" if costs.rounds == 1 else f"{costs.rounds} rounds"
        said += (
            f" {rounds}. The processor's counter runs at {costs.ticks_hz / 1e6:.0f} MHz;"
            f" a reading between a lock and an unlock takes {costs.ticks_read_ns:.1f} ns."
        )
    return said


def machine_line(here: MachineInfo) -> str:
    """Return a sentence about the machine."""
    return (
        f"{here.processor}, {here.cpus} CPUs, {here.system}, {here.libc};"
        f" load {here.load:.1f} at the beginning."
    )


# ---- the tables ----


def _rows_by_case(costs: Costs) -> dict[Case, dict[str, CostRow]]:
    cases: dict[Case, dict[str, CostRow]] = {}
    for row in costs.rows:
        cases.setdefault(row.case, {})[row.flavour] = row
    return cases


def _compact(costs: Costs) -> Cells:
    lines = []
    for case, rows in _rows_by_case(costs).items():
        unprepared = rows[UNPREPARED]
        times = [_figure(unprepared.ns.median, 1), _figure(unprepared.ticks.median, 0)]
        ratios = [_half_spread_text(rows[flavour].ratio, costs.rounds) for flavour in _WATCHED]
        lines.append([case.primitive, str(case.threads), *times, *ratios])
    return Cells(["", "threads", "unprepared ns", "ticks", *_WATCHED], lines, 1)


def _ratios(costs: Costs) -> Cells:
    lines = [
        [case.operation, str(case.threads)]
        + [_quartile_text(rows[flavour].ratio, 2, costs.rounds) for flavour in _WATCHED]
        for case, rows in _rows_by_case(costs).items()
    ]
    return Cells(["operation", "threads", *_WATCHED], lines, 1)


def _times(costs: Costs) -> Cells:
    lines = [
        [case.operation, str(case.threads)]
        + [_ns_and_ticks(row, costs.rounds) for row in rows.values()]
        for case, rows in _rows_by_case(costs).items()
    ]
    return Cells(["operation", "threads", *FLAVOURS], lines, 1)


def _trace(growths: Sequence[Growth]) -> Cells:
    lines = [
        [growth.mix, growth.level]
        + [str(count) for count in (growth.acquisitions, growth.contended, growth.records)]
        + [f"{growth.bytes_each:.1f}", f"{times_longer(growths, growth):.1f}"]
        for growth in growths
    ]
    head = ["acquisitions that", "level", "in all", "waits", "records", "bytes each"]
    return Cells([*head, "times further back than all"], lines, 2)


def _verdicts(verdicts: Iterable[Verdict]) -> Cells:
    lines = [
        [verdict.what, verdict.limit, verdict.measured, _outcome(verdict)] for verdict in verdicts
    ]
    return Cells(["budget", "limit", "measured", ""], lines, 4)


def _reason_table(verdicts: Sequence[Verdict]) -> Cells:
    table = _verdicts(verdicts)
    lines = [[*line, verdict.why] for line, verdict in zip(table.lines, verdicts, strict=True)]
    return Cells([*table.head, "why"], lines, 5)


# ---- the cells ----


def _outcome(verdict: Verdict) -> str:
    return f"missed by {verdict.missed_by}" if verdict.missed_by else "met"


def _figure(value: float, digits: int) -> str:
    return f"{value:.{digits if abs(value) < 1000 else 0}f}"


def _half_spread_text(figure: Spread, rounds: int) -> str:
    half = f" +-{_figure((figure.high - figure.low) / 2, 2)}" if rounds > 1 else ""
    return _figure(figure.median, 2) + half


def _quartile_text(figure: Spread, digits: int, rounds: int) -> str:
    low, middle, high = (
        _figure(value, digits) for value in (figure.low, figure.median, figure.high)
    )
    return f"{middle} ({low}-{high})" if rounds > 1 else middle


def _ns_and_ticks(row: CostRow, rounds: int) -> str:
    return f"{_quartile_text(row.ns, 1, rounds)} / {_figure(row.ticks.median, 0)}"


# ---- the forms ----


def align(table: Cells) -> str:
    """Return the table as aligned text."""
    rows = [table.head, *table.lines]
    widths = [max(len(row[column]) for row in rows) for column in range(len(table.head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column < table.words else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def markdown_table(table: Cells) -> str:
    """Return the table in Markdown."""
    rule = ["---"] * table.words + ["---:"] * (len(table.head) - table.words)
    return "\n".join(f"| {' | '.join(row)} |" for row in [table.head, rule, *table.lines])
