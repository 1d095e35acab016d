"""Histograms as bars, and percentiles in the lists."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from msgspec.structs import replace
from rich.cells import cell_len
from unit.builders import records, scenarios

from locktop.collector.model import Histogram, LockClass, Snapshot, ThreadGroup
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.views import lock_list, plain_table, thread_list
from locktop.tui.views.class_details import class_details
from locktop.tui.views.histogram import bars, histogram_lines
from locktop.tui.views.lock_details import lock_details
from locktop.tui.views.plain_table import TableChoice
from locktop.tui.views.sorting import sort_key_named
from locktop.tui.views.styled_line import line_text
from locktop.tui.views.thread_details import thread_details

LENGTHS = records.histogram(*[1000] * 97, *[40_000] * 2, 2_000_000)


def texts(
    histogram: Histogram | None, max_s: float | None = None, goes_on: bool = False
) -> list[str]:
    return [line_text(line) for line in histogram_lines("Waits", histogram, max_s, goes_on)]


def measured(seen: Snapshot) -> Snapshot:
    """The first lock and the first thread have lengths."""
    lock, thread = seen.locks[0], seen.threads[0]
    return replace(
        seen,
        locks=(replace(lock, wait_histogram=LENGTHS, hold_histogram=LENGTHS), *seen.locks[1:]),
        threads=(replace(thread, wait_histogram=LENGTHS), *seen.threads[1:]),
    )


@pytest.mark.parametrize(
    "lengths", [(0,), (1, 2**63), (1000, 1100, 1300), tuple(4**n for n in range(32))]
)
def test_bars_have_all_counts_and_no_gap(lengths: Sequence[int]) -> None:
    found = bars(records.histogram(*lengths))
    assert len(found) <= 8
    assert sum(one.count for one in found) == len(lengths)
    assert found[0].count > 0
    assert found[-1].count > 0
    for one, after in pairwise(found):
        assert one.to_s == after.from_s
    for one in found:
        inside = [ns for ns in lengths if one.from_s <= ns / 1e9 < one.to_s]
        assert len(inside) == one.count


def test_the_lines_fit_a_narrow_terminal() -> None:
    wide = records.histogram(*[4**n for n in range(32)])
    huge = replace(wide, counts=tuple([10**9 + count for count in wide.counts]))
    for histogram in (LENGTHS, wide, replace(huge, left_out=10**9)):
        assert max(map(cell_len, texts(histogram))) <= 79


def test_the_heading_has_the_percentiles() -> None:
    assert texts(None) == []
    found = texts(LENGTHS, 0.002)
    assert found[1] == " Waits by length  p50 958ns, p99 36.6us"
    assert len(found) == 2 + len(bars(LENGTHS))
    (bar,) = [line for line in found if line.endswith(" 97")]
    assert bar.count("━") == 36
    assert "3 found no room" in texts(replace(LENGTHS, left_out=3))[1]


def test_the_details_have_histograms() -> None:
    index = SnapshotIndex(measured(scenarios.normal()))
    lock, thread = index.snapshot.locks[0], index.snapshot.threads[0]
    of_lock = "\n".join(map(line_text, lock_details(index, lock)))
    assert "Waits that ended by length  p50 958ns" in of_lock
    assert "Timed holds that ended by length  p50 958ns" in of_lock
    of_thread = "\n".join(map(line_text, thread_details(index, thread)))
    assert "Waits in contention by length  p50 958ns" in of_thread
    plain = SnapshotIndex(scenarios.normal())
    assert "by length" not in "\n".join(
        map(line_text, lock_details(plain, plain.snapshot.locks[0]))
    )


def test_a_class_and_a_group_have_the_sums() -> None:
    seen = scenarios.fleet()
    locks = [replace(lock, wait_histogram=LENGTHS) for lock in seen.locks]
    threads = [replace(thread, wait_histogram=LENGTHS) for thread in seen.threads]
    index = SnapshotIndex(replace(seen, locks=tuple(locks), threads=tuple(threads)))
    of: LockClass = next(iter(index.classes.values()))
    assert of.wait_histogram is not None
    assert of.wait_histogram.count == 100 * len(of.locks)
    assert of.wait_p50_s == LENGTHS.percentile_s(50)
    assert of.hold_p50_s is None
    assert "Waits that ended by length" in "\n".join(map(line_text, class_details(index, of)))
    group: ThreadGroup = next(iter(index.groups.values()))
    assert group.wait_histogram is not None
    assert group.wait_histogram.count == 100 * len(group.threads)


def test_the_columns_are_chosen_by_their_titles() -> None:
    index = SnapshotIndex(measured(scenarios.normal()))
    name = index.snapshot.locks[0].name
    choice = TableChoice(columns=("lock", "wait50", "wait99", "hold50", "hold99"), shows_idle=True)
    heading, *rows = plain_table.table_lines(index, choice, 80)
    assert heading.split() == ["LOCK", "WAIT50", "WAIT99", "HOLD50", "HOLD99"]
    (row,) = [row for row in rows if name[:10] in row]
    assert row.split()[-4:] == ["958ns", "36.6us", "958ns", "36.6us"]
    assert all(one.split()[-4:] == ["-"] * 4 for one in rows if one is not row)
    choice = TableChoice(view="threads", columns=("tid", "wait50", "wait99"), shows_idle=True)
    rows = [row.split() for row in plain_table.table_lines(index, choice, 80)]
    assert [str(index.snapshot.threads[0].tid), "958ns", "36.6us"] in rows


@pytest.mark.parametrize("name", ["wait50", "wait99", "hold50", "hold99"])
def test_the_longest_come_first(name: str) -> None:
    seen = scenarios.normal()
    lengths = [records.histogram(1000 * 4**number) for number in range(len(seen.locks) - 1)]
    locks = [
        replace(lock, wait_histogram=one, hold_histogram=one, wait_max_s=9.0, hold_max_s=9.0)
        for lock, one in zip(seen.locks, [*lengths, None], strict=True)
    ]
    key = sort_key_named(lock_list.SORT_KEYS, name).key
    assert [one.id for one in sorted(locks, key=key)] == [
        *[lock.id for lock in reversed(locks[:-1])],
        locks[-1].id,
    ]
    if name.startswith("wait"):
        one, *rest = seen.threads
        thread = replace(one, wait_histogram=LENGTHS)
        rows = sorted([*rest, thread], key=sort_key_named(thread_list.SORT_KEYS, name).key)
        assert rows[0].tid == one.tid
