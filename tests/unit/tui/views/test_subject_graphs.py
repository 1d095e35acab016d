"""The graphs of a lock and of a thread in their details."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from msgspec.structs import replace
from rich.cells import cell_len
from unit.builders import scenarios

from locktop.collector.model import Snapshot
from locktop.collector.model.locks import LockRates
from locktop.collector.recording.past_activity import PastActivity
from locktop.tui.views.styled_line import Line, line_text
from locktop.tui.views.subject_graphs import LastMinutes, lock_graphs, thread_graphs

NS = 1_000_000_000
UNTIL = 1_790_000_000 * NS


def minutes(snapshot: Snapshot, width: int = 79) -> LastMinutes:
    past = PastActivity(None)
    for half_second in range(100, -1, -1):
        past.add(snapshot, UNTIL - half_second * NS // 2)
    return LastMinutes(past.points(UNTIL), UNTIL, width)


def busy() -> Snapshot:
    calm = scenarios.normal()
    locks = tuple(
        replace(lock, waiters=(4712, 4713), rates=LockRates(contended=250.0))
        if lock.id == 1
        else replace(lock, waiters=(), rates=LockRates())
        for lock in calm.locks
    )
    threads = tuple(
        replace(thread, wait_share=0.8, cpu_share=0.2)
        if thread.tid == 4712
        else replace(thread, wait_share=0.0, cpu_share=0.0)
        for thread in calm.threads
    )
    return replace(calm, locks=locks, threads=threads, interval_s=0.5)


def texts(lines: Iterable[Line]) -> list[str]:
    return [line_text(line) for line in lines]


@pytest.mark.parametrize("width", [39, 60, 79, 199])
def test_the_graphs_fit_with_their_axis(width: int) -> None:
    recent = minutes(busy(), width)
    for lines, titles in (
        (texts(lock_graphs(recent, {1})), ("Waiting threads 2", "Waits ended a second 250")),
        (texts(thread_graphs(recent, 4712)), ("Waits for locks 80%", "On a CPU 20%")),
    ):
        assert max(map(cell_len, lines)) <= width
        assert len(lines) == (4 if width >= 60 else 7)
        assert all(title in "\n".join(lines) for title in titles), lines
        assert lines[-1].startswith(" -2 min  "), lines


def test_a_class_adds_up_its_locks() -> None:
    locks = tuple(replace(lock, waiters=(4712,)) for lock in busy().locks)
    lines = texts(lock_graphs(minutes(replace(busy(), locks=locks)), {1, 2, 3}))
    assert "Waiting threads 3" in lines[0]


def test_there_is_no_graph_without_a_wait() -> None:
    recent = minutes(busy())
    assert not texts(lock_graphs(recent, {2}))
    assert not texts(thread_graphs(recent, 4713))
    assert not texts(thread_graphs(recent, 99)), "a thread that is not there"
    assert not texts(lock_graphs(None, {1}))


def test_shares_are_unknown_in_the_first_scan_and_while_dormant() -> None:
    (point, *_) = minutes(replace(busy(), interval_s=0.0)).points
    assert point.shares_of(4712) is None
    (point, *_) = minutes(replace(busy(), level="dormant")).points
    assert point.shares_of(4712) is None
    assert point.waiting_for({1}) is None
    assert point.waits_per_s_for({1}) is None
