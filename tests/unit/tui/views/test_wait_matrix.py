"""The matrix of waiters and holders adds up the recorded waits."""

from __future__ import annotations

from msgspec.structs import replace
from unit.builders import records, scenarios

from locktop.collector.model import Event, Kind, ThreadState
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.views.styled_line import line_text
from locktop.tui.views.wait_matrix import wait_matrix


def _event(tid: int, holder: int, wait_s: float, lock: int = 1) -> Event:
    return Event(tid, lock, Kind.MUTEX, 1.0, wait_s, 0.1, 0, holder, 0, False)


def _text(*events: Event) -> list[str]:
    threads = tuple(records.thread(tid, f"t{tid}", ThreadState.RUNNING) for tid in range(1, 20))
    snapshot = replace(scenarios.normal(), threads=threads, events=events)
    return [line_text(line) for line in wait_matrix(SnapshotIndex(snapshot), 1)]


def test_cells_are_sums_by_waiter_and_holder() -> None:
    lines = _text(
        _event(1, 2, 0.5), _event(1, 2, 0.25), _event(3, 2, 2.0), _event(3, 1, 0.1),
        _event(4, 2, 9.0, lock=7), _event(5, 0, 9.0),
    )  # fmt: skip
    assert lines[1] == " Who waited for whom, in the latest 4 recorded waits"
    assert lines[2].split() == ["waiter,", "holder:", "t2", "t1"]
    assert lines[3].split() == ["t3", "2.00s", "100ms"]
    assert lines[4].split() == ["t1", "750ms", "-"]
    assert len(lines) == 5


def test_one_pair_is_no_matrix() -> None:
    assert _text(_event(1, 2, 0.5)) == []
    assert _text() == []


def test_more_threads_than_fit_are_counted() -> None:
    events = [_event(waiter, holder, 1.0) for waiter in range(1, 11) for holder in range(11, 18)]
    lines = _text(*events)
    assert lines[-1] == "  and 2 more waiters and 2 more holders"
    assert all(len(line) <= 80 for line in lines)
