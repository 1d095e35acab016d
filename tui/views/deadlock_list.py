"""The rows of the list of deadlocks: the certain ones, the possible ones, then the potential."""

from __future__ import annotations

from collections.abc import Mapping

from locktop.collector.model import DeadlockReport, OrderCycle
from locktop.collector.render.words import deadlock, lock_order
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.render.words.units import counted, lasting
from locktop.tui.views.banner import no_deadlock
from locktop.tui.views.styled_line import Line, make_line

#: The ids of the rows of potential deadlocks are the numbers from 1, and this.
POTENTIAL = 1 << 20
_WORD_WIDTH, _SINCE_WIDTH = 9, 8
HEADING: Line = make_line(
    (f" {'DEADLOCK':<{_WORD_WIDTH}} {'SINCE':>{_SINCE_WIDTH}}  THREADS AND LOCKS", "label")
)


def deadlock_rows(index: SnapshotIndex) -> Mapping[int, Line]:
    """Return the rows by id. The id of a deadlock is its number from 1 in the snapshot.

    The row 0 is a message, where there is no deadlock of any kind.
    """
    rows = {number: _deadlock(report) for number, report in enumerate(index.deadlock_reports, 1)}
    cycles = lock_order.not_there(index.snapshot)
    rows |= {POTENTIAL + number: _potential(index, cycle) for number, cycle in enumerate(cycles, 1)}
    return rows or {0: make_line((f" {no_deadlock(index)}", "dim"))}


def _deadlock(report: DeadlockReport) -> Line:
    certain = report.certain
    since = lasting(report.since_s, report.is_lower_bound)
    behind = f"; {counted(len(report.behind), 'thread')} behind" if report.behind else ""
    return make_line(
        (
            f" {'certain' if certain else 'possible':<{_WORD_WIDTH}}",
            "stuck" if certain else "waiting",
        ),
        f" {since:>{_SINCE_WIDTH}}  ",
        (deadlock.circle(report, " → "), "strong"),
        behind,
    )


def _potential(index: SnapshotIndex, cycle: OrderCycle) -> Line:
    names = " → ".join(index.lock_name(lock) for lock in (*cycle.locks, cycle.locks[0]))
    return make_line(
        (f" {'potential':<{_WORD_WIDTH}}", "dim"),
        (f" {'-':>{_SINCE_WIDTH}}  ", "dim"),
        names,
        (f"  {cycle.confidence.value} confidence", "dim"),
    )
