"""The list of locks: its columns and its sort keys. A row is a lock or a class of locks."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from functools import partial

from locktop.collector.model import ActivityState, Lock, LockClass, figure_columns
from locktop.collector.render.words import activity
from locktop.collector.render.words.lock_kind import kind_word
from locktop.collector.render.words.snapshot_index import SnapshotIndex, is_contention
from locktop.collector.render.words.source_location import short_location
from locktop.tui.views import row_groups
from locktop.tui.views.cells import PARTS_OF_LAST_MINUTE as PARTS
from locktop.tui.views.cells import count, duration, fit_right, held_text, percent, sparkline
from locktop.tui.views.shorten import fit_location, fit_middle, location_in
from locktop.tui.views.sorting import SortKey, most_first
from locktop.tui.views.styled_line import Span
from locktop.tui.views.table import Cell, Column

LockRow = Lock | LockClass

_AT_WIDTH = 24
_MAX_WIDTH = 6
#: The title of the column that says what the holders do.
HOLDER_NOW = "HOLDER NOW"
#: The title of the column with the waiting of the last minute.
LAST_MINUTE = "LAST MINUTE"
#: A name made of a source location: the function and the line.
_INIT_LOCATION = re.compile(r"^\w+ (?:made )?in (.*?)(?: \([^()]*(:\d+)\))?(?=  |$)")


def _wait_order(index: SnapshotIndex, row: LockRow) -> tuple[float, ...]:
    """Most wait first. The waits behind the root of a chain count for the root.

    So the lock that all threads wait for in the end is above the locks that its waiters hold.
    """
    ids = row.locks if isinstance(row, LockClass) else (row.id,)
    behind_s = sum([index.chained_wait_s.get(id_, 0.0) for id_ in ids])
    return -row.counted_wait_s - behind_s, -row.contended


def _declared_sort_keys() -> Iterator[SortKey[LockRow]]:
    """Yield an order for each column of a declared figure, named as the column."""
    for name, column, _ in figure_columns():
        yield SortKey(column.title.lower(), column.title, partial(_most_of_figure, name))


def _most_of_figure(name: str, lock: LockRow) -> tuple[float, ...]:
    return most_first(getattr(lock, name)), -lock.counted_wait_s


#: In the order in which the key goes through them.
SORT_KEYS: tuple[SortKey[LockRow], ...] = (
    SortKey("wait", "WAIT", lambda lock: (-lock.counted_wait_s, -lock.contended), _wait_order),
    SortKey("contended", "CONTEND", lambda lock: (-lock.contended, -lock.wait_s)),
    SortKey(
        "rate",
        "WAIT/s",
        lambda lock: (-lock.rates.wait, most_first(lock.rates.contended), -lock.wait_s),
    ),
    SortKey("hold", "HELD%", lambda lock: (most_first(lock.rates.hold), most_first(lock.hold_s))),
    SortKey("wait99", "WAIT99", lambda lock: (most_first(lock.wait_p99_s), -lock.wait_s)),
    SortKey("wait50", "WAIT50", lambda lock: (most_first(lock.wait_p50_s), -lock.wait_s)),
    SortKey("hold99", "HOLD99", lambda lock: (most_first(lock.hold_p99_s), -lock.wait_s)),
    SortKey("hold50", "HOLD50", lambda lock: (most_first(lock.hold_p50_s), -lock.wait_s)),
    *_declared_sort_keys(),
    SortKey("name", "LOCK", lambda lock: (lock.name.lower(),)),
)


def mark(index: SnapshotIndex, lock: LockRow) -> Cell:
    """The character before a row: ! for a deadlock, * for a lock that threads wait for now."""
    if _is_stuck(index, lock):
        return "!", "stuck"
    if lock.waiters and is_contention(lock):
        return "*", "waiting"
    return " ", "text"


def columns(
    index: SnapshotIndex, is_open: Callable[[LockClass], bool] = lambda _: False
) -> tuple[Column[LockRow], ...]:
    """All columns from the left; a narrow screen leaves some out.

    ``is_open`` returns whether the locks of a class have rows of their own.
    """
    return (
        Column(
            "LOCK", 18, lambda lock: _name(index, lock, is_open), fit_lock_name, grow=3, limit=44
        ),
        Column("KIND", 7, lambda lock: (kind_word(lock.kind, lock.name), _quiet(lock))),
        Column("HELD BY", 11, lambda lock: _holder(index, lock), fit_middle, grow=2, limit=19),
        _figure("FOR", 6, lambda lock: _held_for(index, lock), 100),
        Column(
            HOLDER_NOW,
            20,
            lambda lock: _holder_now(index, lock),
            grow=4,
            limit=44,
            from_width=128,
        ),
        Column("WAITERS", 7, _waiters, fitting=fit_right),
        _figure("CONT/s", 6, lambda lock: index.waited(count(lock.rates.contended))),
        _figure("WAIT/s", 6, lambda lock: index.waited(duration(lock.rates.wait))),
        _figure("HELD%", 5, lambda lock: index.waited(_held_share(lock)), 100),
        _figure("WAIT", 6, lambda lock: duration(lock.counted_wait_s)),
        _figure("MAX", _MAX_WIDTH, _longest_wait),
        _figure("WAIT50", 6, lambda lock: duration(lock.wait_p50_s), 204),
        _figure("WAIT99", 6, lambda lock: duration(lock.wait_p99_s), 188),
        _figure("CONTEND", 7, lambda lock: _contended_text(index, lock), 112),
        _figure("HOLD~", 6, lambda lock: duration(mean_hold(lock)), 106),
        _figure("HOLD50", 6, lambda lock: duration(lock.hold_p50_s), 212),
        _figure("HOLD99", 6, lambda lock: duration(lock.hold_p99_s), 196),
        Column(LAST_MINUTE, PARTS, lambda lock: _last_minute(index, lock), from_width=220),
        _figure("ACQ/s", 5, lambda lock: index.waited(count(lock.rates.acquisitions)), 150),
        Column("HELD AT", _AT_WIDTH, lambda lock: _held_at(index, lock), fit_location, 4, 0, 158),
        *_declared_columns(),
    )


def _declared_columns() -> Iterator[Column[LockRow]]:
    """The columns that figures have by their declaration (collector/model/lock_figures.py)."""
    for name, column, is_time in figure_columns():
        text = partial(_duration_of, name) if is_time else partial(_count_of, name)
        yield _figure(column.title, column.width, text, column.from_width)


def _count_of(name: str, lock: LockRow) -> str:
    return count(getattr(lock, name))


def _duration_of(name: str, lock: LockRow) -> str:
    return duration(getattr(lock, name))


def _last_minute(index: SnapshotIndex, lock: LockRow) -> Cell:
    recent = index.snapshot.recent_lock_waits
    ids = lock.locks if isinstance(lock, LockClass) else (lock.id,)
    figures = [recent[id_] for id_ in ids if id_ in recent]
    return sparkline([sum(parts) for parts in zip(*figures, strict=True)]), "waiting"


def _figure(
    title: str, width: int, text: Callable[[LockRow], str], from_width: int = 0
) -> Column[LockRow]:
    """A column of figures, grey for a lock without contention."""
    return Column(
        title,
        width,
        lambda lock: (text(lock), _quiet(lock)),
        fitting=fit_right,
        from_width=from_width,
    )


def _longest_wait(lock: LockRow) -> str:
    """The longest wait, with ``<`` for an upper bound and ``>`` for a lower one."""
    longest_s = lock.wait_max_s
    if lock.wait_max_is_bound:
        return _bound("<", longest_s, math.ceil)
    if lock.wait_max_is_lower_bound:
        return _bound(">", longest_s, math.floor) if longest_s else "-"
    return duration(longest_s)


def _bound(sign: str, seconds: float, rounded: Callable[[float], int]) -> str:
    """A bound, in whole minutes or milliseconds if there is no room for more digits."""
    text = f"{sign}{duration(seconds)}"
    if len(text) <= _MAX_WIDTH:
        return text
    if seconds < 1.0:
        return f"{sign}{rounded(seconds * 1000)}ms"
    return f"{sign}{rounded(seconds / 60)}m"


def mean_hold(lock: LockRow) -> float | None:
    """Seconds held per acquisition, None where no hold was timed."""
    if not lock.hold_timed or not lock.acquisitions or lock.hold_s is None:
        return None
    return lock.hold_s / lock.acquisitions


def _quiet(lock: LockRow) -> str:
    return "text" if (lock.contended or lock.waiters) and is_contention(lock) else "dim"


def _is_stuck(index: SnapshotIndex, lock: LockRow) -> bool:
    stuck = index.stuck_locks
    return not stuck.isdisjoint(lock.locks) if isinstance(lock, LockClass) else lock.id in stuck


def _name(index: SnapshotIndex, lock: LockRow, is_open: Callable[[LockClass], bool]) -> Cell:
    style = "strong" if _quiet(lock) == "text" else "dim"
    return _label(index, lock, is_open), "stuck" if _is_stuck(index, lock) else style


def _label(index: SnapshotIndex, lock: LockRow, is_open: Callable[[LockClass], bool]) -> str:
    if isinstance(lock, LockClass):
        return row_groups.label(lock.name, len(lock.locks), "locks", is_open(lock))
    lock_class = index.class_of.get(lock.id)
    if lock_class is None:
        return lock.name
    return row_groups.INSIDE + index.name_in_class(lock, lock_class)


def fit_lock_name(text: str, width: int) -> str:
    """A name made of a source location becomes ``function:line`` where it does not fit."""
    return row_groups.fit_label(text, width, lambda name: _INIT_LOCATION.sub(r"\1\2", name))


def _holder(index: SnapshotIndex, lock: LockRow) -> Cell:
    if isinstance(lock, LockClass):
        return index.holders(lock.holders, 0), "holder"
    return index.holder_in_column(lock), "holder"


def _holder_now(index: SnapshotIndex, lock: LockRow) -> Cell:
    return holder_activity_span(index, lock) if isinstance(lock, Lock) else ("", "dim")


def _waiters(lock: LockRow) -> Cell:
    """The number of waiters."""
    if not lock.waiters:
        return "-", "dim"
    return str(len(lock.waiters)), "waiting" if is_contention(lock) else "dim"


def _contended_text(index: SnapshotIndex, lock: LockRow) -> str:
    return "-" if index.snapshot.is_sampled else count(lock.contended)


def _held_for(index: SnapshotIndex, lock: LockRow) -> str:
    if not lock.holders or isinstance(lock, LockClass):
        return "-"
    held = index.held(lock.holders[0], lock.id)
    return held_text(held)


def _held_share(lock: LockRow) -> str:
    held = lock.rates.hold
    if isinstance(lock, LockClass) and held is not None and held > 1:
        return f"{held:.0%}" if held < 99 else f"{held:.0f}x"
    # A lock that was never released has no timed hold, but has a share.
    return percent(held) if lock.hold_timed or held else "-"


def _held_at(index: SnapshotIndex, lock: LockRow) -> Cell:
    if isinstance(lock, LockClass):
        return "", "where"
    held = index.held(lock.holders[0], lock.id) if lock.holders else None
    frame = index.snapshot.sites.get(held.site) if held is not None else None
    return short_location(frame) if frame is not None else "", "where"


def holder_activity_span(index: SnapshotIndex, lock: Lock) -> Span:
    """The activity of the holder in a few words, "" where that was not measured.

    For example ``in fsync(7 -> /var/lib/x/wal) for 1.3 s``, ``runs parse:120``,
    ``waits for g_lock``.
    """
    now = lock.holder_activity
    if now is None:
        return "", "dim"
    wait = index.threads[now.tid].waiting_for if now.tid in index.threads else None
    if now.doing is ActivityState.WAITING and wait is not None:
        return f"waits for {index.lock_name(wait.lock)}", "waiting"
    stack = index.snapshot.stacks.get(now.stack)
    if now.doing is ActivityState.RUNNING and stack and not now.stack_age_s:
        # In a library function, such as a copy, the location in the program says more.
        own = next((frame for frame in stack if frame.line is not None), stack[0])
        return f"runs {location_in(own, _AT_WIDTH)}", "running"
    return activity.doing(now, now.tid), "text"
