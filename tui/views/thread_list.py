"""The list of threads: its columns and its sort keys. A row is a thread or a group of threads."""

from __future__ import annotations

from collections.abc import Callable

from locktop.collector.model import CONTENTION_KINDS, Thread, ThreadGroup, ThreadState, TimeSplit
from locktop.collector.render.words import activity
from locktop.collector.render.words.snapshot_index import (
    LONG_WAIT_S,
    SOME_SHARE,
    SnapshotIndex,
    only_waits_for_work,
)
from locktop.collector.render.words.source_location import short_location
from locktop.tui.views import row_groups
from locktop.tui.views.cells import PARTS_OF_LAST_MINUTE as PARTS
from locktop.tui.views.cells import (
    bar,
    count,
    duration,
    fit_right,
    lasting,
    percent,
    sparkline,
)
from locktop.tui.views.lock_list import LAST_MINUTE, fit_lock_name
from locktop.tui.views.shorten import fit_location, fit_middle
from locktop.tui.views.sorting import SortKey, most_first
from locktop.tui.views.styled_line import Line
from locktop.tui.views.table import Cell, Column
from locktop.tui.views.time_bar import time_bar

_STATE_RANK = {
    ThreadState.WAITING: 0,
    ThreadState.RUNNING: 2,
    ThreadState.RUNNABLE: 2,
    ThreadState.OTHER: 3,
    ThreadState.IDLE: 3,
}

_STATE_STYLE = {
    ThreadState.WAITING: "waiting",
    ThreadState.RUNNING: "running",
    ThreadState.RUNNABLE: "running",
    ThreadState.OTHER: "text",
    ThreadState.IDLE: "text",
}

_AT_WIDTH = 24
#: From this width the TIME bar replaces the bar of the wait.
_TIME_FROM = 100

ThreadRow = Thread | ThreadGroup


def threads_of(row: ThreadRow) -> tuple[Thread, ...]:
    """The threads of a row, the longest wait first."""
    return row.threads if isinstance(row, ThreadGroup) else (row,)


def _order(
    name: str, column: str, key: Callable[[Thread], tuple[float | str, ...]]
) -> SortKey[ThreadRow]:
    """A sort key that puts a group where its first thread would be."""
    return SortKey(name, column, lambda row: min(map(key, threads_of(row))))


#: In the order in which the key goes through them.
SORT_KEYS: tuple[SortKey[ThreadRow], ...] = (
    _order("state", "STATE", lambda thread: _state_order(thread)),
    _order("wait", "WAITED", lambda thread: (-contention_wait(thread), thread.tid)),
    _order("share", "WAIT%", lambda thread: (-round(thread.wait_share, 2), thread.tid)),
    _order("cpu", "CPU%", lambda thread: (-round(thread.cpu_share, 2), -thread.cpu_s, thread.tid)),
    _order("wait99", "WAIT99", lambda thread: (most_first(thread.wait_p99_s), thread.tid)),
    _order("wait50", "WAIT50", lambda thread: (most_first(thread.wait_p50_s), thread.tid)),
    _order("name", "THREAD", lambda thread: (thread.name.lower(), thread.tid)),
)


def _state_order(thread: Thread) -> tuple[float, ...]:
    """Long waits first, the longest at the top; then the threads that wait most; idle ones last.

    Short waits come and go between two scans, so they count by their share of the last interval.
    By the state of the moment the list would never be still.
    """
    wait = thread.waiting_for
    rank, since = float(_STATE_RANK[thread.state]), 0.0
    if only_waits_for_work(thread):
        rank = 4.0
    elif (
        wait is not None and thread.state is ThreadState.WAITING and wait.duration_s >= LONG_WAIT_S
    ):
        rank, since = 0.0, -wait.duration_s
    elif thread.state is ThreadState.WAITING or thread.wait_share >= SOME_SHARE:
        rank = 1.0
    return (rank, since, -round(thread.wait_share, 1), -round(thread.cpu_share, 1), thread.tid)


def mark(index: SnapshotIndex, row: ThreadRow) -> Cell:
    """The character before a row: ! for a deadlock, * for a thread that waits for a lock."""
    thread = threads_of(row)[0]
    if thread.tid in index.stuck_threads:
        return "!", "stuck"
    if thread.state is ThreadState.WAITING:
        return "*", "waiting"
    return " ", "text"


def columns(
    index: SnapshotIndex, is_open: Callable[[ThreadGroup], bool] = lambda _: False
) -> tuple[Column[ThreadRow], ...]:
    """All columns from the left; a narrow screen leaves some out.

    ``is_open`` returns whether the threads of a group have rows of their own.
    """
    return (
        Column("THREAD", 15, lambda row: _name(index, row, is_open), row_groups.fit_label),
        _figure(index, "TID", 7, lambda row: str(row.tid) if isinstance(row, Thread) else "", 90),
        Column("STATE", 8, lambda row: _state(index, row)),
        Column(
            "WAITS FOR",
            14,
            lambda row: _waits_for(index, row),
            fit_lock_name,
            grow=3,
            limit=36,
        ),
        _figure(index, "SINCE", 6, lambda row: _since(index, row)),
        Column("HELD BY", 12, lambda row: _held_by(index, row), fit_middle, grow=2, limit=19),
        _figure(index, "WAIT%", 5, lambda row: index.waited(percent(_wait_share(row)))),
        Column("", 6, lambda row: (bar(_wait_share(row), 6), "waiting"), below_width=_TIME_FROM),
        Column("TIME", 10, _no_cell, from_width=_TIME_FROM, spans=_time),
        _figure(index, "CPU%", 4, lambda row: index.lately(percent(_cpu_share(row))), 96),
        Column("HOLDS", 5, _holds, fitting=fit_right, from_width=104),
        _figure(index, "WAITED", 6, lambda row: duration(_contention_wait(row)), 112),
        _figure(index, "WAIT50", 6, lambda row: duration(row.wait_p50_s), 154),
        _figure(index, "WAIT99", 6, lambda row: duration(row.wait_p99_s), 146),
        Column(LAST_MINUTE, PARTS, lambda row: _last_minute(index, row), from_width=220),
        _figure(index, "CONTEND", 7, lambda row: count(row.contended), 120),
        Column("AT", _AT_WIDTH, lambda row: _where(index, row), fit_location, 4, 0, 138),
    )


def _last_minute(index: SnapshotIndex, row: ThreadRow) -> Cell:
    recent = index.snapshot.recent_thread_waits
    figures = [recent[thread.tid] for thread in threads_of(row) if thread.tid in recent]
    return sparkline([sum(parts) for parts in zip(*figures, strict=True)]), "waiting"


def _figure(
    index: SnapshotIndex,
    title: str,
    width: int,
    text: Callable[[ThreadRow], str],
    from_width: int = 0,
) -> Column[ThreadRow]:
    """A column of figures, grey for threads that only wait for work."""
    return Column(
        title,
        width,
        lambda row: (text(row), _quiet(index, row)),
        fit_right,
        from_width=from_width,
    )


def _wait_share(row: ThreadRow) -> float:
    """The share of a thread, the mean of a group."""
    threads = threads_of(row)
    return sum([thread.wait_share for thread in threads]) / len(threads)


def row_time(row: ThreadRow) -> TimeSplit | None:
    """Where the time of a thread went, or the mean of a group."""
    return row.time


def _time(row: ThreadRow, width: int) -> Line:
    return time_bar(row_time(row), width)


def _no_cell(row: ThreadRow) -> Cell:
    return "", "text"


def _cpu_share(row: ThreadRow) -> float:
    return sum([thread.cpu_share for thread in threads_of(row)])


def _contention_wait(row: ThreadRow) -> float:
    return sum(map(contention_wait, threads_of(row)))


def contention_wait(thread: Thread) -> float:
    """Seconds that the thread waited for locks in contention.

    Of a kind that is no lock, only the present wait counts: of earlier ones it is not known.
    """
    waited = 0.0
    for kind, seconds in thread.wait_s.items():
        if kind in CONTENTION_KINDS:
            waited += seconds
    wait = thread.waiting_for
    if wait is not None and not wait.idle and wait.kind not in CONTENTION_KINDS:
        waited += wait.duration_s
    return waited


def state_word(index: SnapshotIndex, thread: Thread) -> str:
    """The activity of the thread in one word."""
    if not thread.alive:
        return "ended"
    if index.dormant and thread.state is ThreadState.IDLE and thread.waiting_for is None:
        return "asleep"  # the thread may wait for a lock
    return activity.state(thread, index.awaited_holders)


def states_word(index: SnapshotIndex, row: ThreadRow) -> str:
    """The activity of the threads of a row. Where they differ, how many wait, else how many run."""
    threads = threads_of(row)
    if isinstance(row, ThreadGroup) and len(row.states) > 1:
        for state, verb in ((ThreadState.WAITING, "wait"), (ThreadState.RUNNING, "run")):
            number = sum(thread.state is state for thread in threads)
            if number:
                return f"{number} {verb}"
    return state_word(index, threads[0])


def _quiet(index: SnapshotIndex, row: ThreadRow) -> str:
    return "dim" if index.is_idle(row) else "text"


def _where(index: SnapshotIndex, row: ThreadRow) -> Cell:
    frame = index.wait_frame(threads_of(row)[0])
    text = short_location(frame) if frame is not None else ""
    return text, "dim" if index.is_idle(row) else "where"


def _name(index: SnapshotIndex, row: ThreadRow, is_open: Callable[[ThreadGroup], bool]) -> Cell:
    style = "dim" if index.is_idle(row) else "strong"
    if isinstance(row, ThreadGroup):
        return row_groups.label(row.name, len(row.threads), "threads", is_open(row)), style
    inside = row_groups.INSIDE if row.tid in index.group_of else ""
    stuck = row.tid in index.stuck_threads
    return inside + index.thread_name(row.tid), "stuck" if stuck else style


def _state(index: SnapshotIndex, row: ThreadRow) -> Cell:
    state = threads_of(row)[0].state
    return states_word(index, row), "dim" if index.is_idle(row) else _STATE_STYLE[state]


def _waits_for(index: SnapshotIndex, row: ThreadRow) -> Cell:
    wait = threads_of(row)[0].waiting_for
    if wait is None:
        return _unobserved_type(index, row), "text"
    name = index.lock_name(wait.lock)
    if isinstance(row, ThreadGroup) and len(row.locks) > 1:
        name = row.lock_name or f"{name} +{len(row.locks) - 1}"
    return name, "dim" if index.is_idle(row) else "strong"


def _unobserved_type(index: SnapshotIndex, row: ThreadRow) -> str:
    """The type of a wait that the library does not observe; of a group only a common type."""
    waits = {index.unobserved_waits.get(thread.tid) for thread in threads_of(row)}
    types = {wait.type if wait is not None else None for wait in waits}
    type_ = types.pop()
    # "unobserved" does not fit the column on a terminal of 120 columns.
    return "" if types or type_ is None else f"futex: {type_}" if type_ else "futex"


def _since(index: SnapshotIndex, row: ThreadRow) -> str:
    thread = threads_of(row)[0]
    if thread.waiting_for is not None:
        return lasting(thread.waiting_for.duration_s, thread.waiting_for.is_lower_bound)
    unobserved = index.unobserved_waits.get(thread.tid) if _unobserved_type(index, row) else None
    return (
        lasting(unobserved.duration_s, is_lower_bound=True)
        if unobserved is not None and unobserved.duration_s
        else ""
    )


def _held_by(index: SnapshotIndex, row: ThreadRow) -> Cell:
    wait = threads_of(row)[0].waiting_for
    if wait is None:
        return "", "text"
    holders = row.holders if isinstance(row, ThreadGroup) else wait.holders
    lock = index.locks.get(wait.lock)
    if not holders and lock is not None:
        return index.holder_in_column(lock), "holder"
    return index.holders(holders, wait.lock), "holder"


def _holds(row: ThreadRow) -> Cell:
    holds = row.holds if isinstance(row, ThreadGroup) else len(row.holds)
    return (str(holds), "holder") if holds else ("-", "dim")
