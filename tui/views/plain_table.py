"""The lists of locks and threads as plain text, for output that is no screen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from locktop.collector.errors import LocktopError
from locktop.collector.model import Lock, LockClass, Thread
from locktop.collector.render.words.nearest import question
from locktop.collector.render.words.row_filter import RowFilter
from locktop.collector.render.words.snapshot_index import SnapshotIndex, is_contention
from locktop.tui.views import lock_list, thread_list
from locktop.tui.views.lock_list import LockRow
from locktop.tui.views.sorting import SortKey, sort_key_named
from locktop.tui.views.styled_line import line_text
from locktop.tui.views.table import Cell, Column, Table, lay_out
from locktop.tui.views.thread_list import ThreadRow, threads_of


class TableChoice(Struct, frozen=True):
    """Which list is printed, and how."""

    view: str = "locks"  # a key of VIEWS
    sort: str = ""  # the name of a sort key; "" for the first one
    wanted: RowFilter = RowFilter()
    columns: tuple[str, ...] = ()  # titles; none: as many as fit
    shows_idle: bool = False


class _View(Struct, frozen=True):
    """One list."""

    rows: Callable[[SnapshotIndex], list[Any]]
    columns: Callable[[SnapshotIndex], Sequence[Column[Any]]]
    sort_keys: Sequence[SortKey[Any]]
    is_idle: Callable[[SnapshotIndex, Any], bool]
    mark: Callable[[SnapshotIndex, Any], Cell]
    words: Callable[[SnapshotIndex, Any], str]
    #: The single locks or threads of a row.
    members: Callable[[SnapshotIndex, Any], Sequence[Any]]


def _lock_rows(index: SnapshotIndex) -> list[LockRow]:
    singles = (lock for id_, lock in index.locks.items() if id_ not in index.class_of)
    return [*index.classes.values(), *singles]


def _thread_rows(index: SnapshotIndex) -> list[ThreadRow]:
    singles = (thread for tid, thread in index.threads.items() if tid not in index.group_of)
    return [*index.groups.values(), *singles]


def _lock_words(index: SnapshotIndex, row: LockRow) -> str:
    name = row.name if isinstance(row, LockClass) else index.lock_name(row.id)
    tids = (*row.holders, *row.waiters)
    return " ".join([name, row.kind.value, *(index.thread_name(tid) for tid in tids)])


def _thread_words(index: SnapshotIndex, row: ThreadRow) -> str:
    threads: Sequence[Thread] = threads_of(row)
    waits = [thread.waiting_for for thread in threads if thread.waiting_for is not None]
    names = (index.lock_name(wait.lock) for wait in waits)
    return " ".join([*(thread.name for thread in threads), *names])


VIEWS: dict[str, _View] = {
    "locks": _View(
        _lock_rows,
        lock_list.columns,
        lock_list.SORT_KEYS,
        lambda _, row: not is_contention(row),
        lock_list.mark,
        _lock_words,
        lambda index, row: (
            [index.locks[id_] for id_ in row.locks] if isinstance(row, LockClass) else [row]
        ),
    ),
    "threads": _View(
        _thread_rows,
        thread_list.columns,
        thread_list.SORT_KEYS,
        lambda index, row: index.is_idle(row),
        thread_list.mark,
        _thread_words,
        lambda _, row: threads_of(row),
    ),
}


def check(choice: TableChoice) -> None:
    """Check a choice of the user. Raises LocktopError, which names what is known."""
    view = VIEWS[choice.view]
    names = [key.name for key in view.sort_keys]
    if choice.sort and choice.sort not in names:
        there_are = f"{', '.join(names)}{question(choice.sort, names)}"
        raise LocktopError(f"no sort key {choice.sort!r} of {choice.view}: {there_are}")


def table_lines(index: SnapshotIndex, choice: TableChoice, width: int) -> Iterator[str]:
    """Yield the heading and the rows of a list in ``width`` cells.

    Raises:
        LocktopError: a column of the choice does not exist.
    """
    view = VIEWS[choice.view]
    table = _table(view.columns(index), choice, width)
    key = sort_key_named(view.sort_keys, choice.sort or view.sort_keys[0].name).row_key(index)
    rows = [row for row in view.rows(index) if _is_wanted(index, view, row, choice)]
    yield line_text(table.heading()).rstrip()
    for row in sorted(rows, key=lambda row: (_is_behind(index, view, row), key(row))):
        yield line_text(table.line(row, view.mark(index, row))).rstrip()
    hidden = len(view.rows(index)) - len(rows)
    if hidden:
        yield f" ({hidden} more rows without contention, or left out by the filter)"


def _table(columns: Sequence[Column[Any]], choice: TableChoice, width: int) -> Table[Any]:
    if not choice.columns:
        return lay_out(columns, width)
    by_title = {column.title.casefold(): column for column in columns}
    for title in choice.columns:
        if title.casefold() not in by_title:
            titles = [column.title for column in columns if column.title]
            there_are = f"{', '.join(titles)}{question(title, titles)}"
            raise LocktopError(f"no column {title!r} of {choice.view}: {there_are}")
    chosen = tuple(by_title[title.casefold()] for title in choice.columns)
    return Table(chosen, tuple(column.width for column in chosen))


def _is_wanted(index: SnapshotIndex, view: _View, row: Any, choice: TableChoice) -> bool:
    if choice.wanted:
        members = view.members(index, row)
        return any(
            choice.wanted.finds(index, member, view.words(index, member)) for member in members
        )
    return choice.shows_idle or _is_stuck(index, row) or not view.is_idle(index, row)


def _is_behind(index: SnapshotIndex, view: _View, row: object) -> tuple[bool, bool]:
    """Deadlocked rows come first, idle ones last, as on the screen."""
    return not _is_stuck(index, row), view.is_idle(index, row)


def _is_stuck(index: SnapshotIndex, row: object) -> bool:
    if isinstance(row, LockClass):
        return not index.stuck_locks.isdisjoint(row.locks)
    if isinstance(row, Lock):
        return row.id in index.stuck_locks
    if isinstance(row, Thread):
        return row.tid in index.stuck_threads
    return False
