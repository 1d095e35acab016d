"""The contents of the two lists: which things, in what order, as which lines.

Equal things are one row until the row is opened: locks of one class, threads in one activity.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from locktop.collector.model import Lock, LockClass, Snapshot, Thread, ThreadGroup
from locktop.collector.recording.past_pressure import PressurePhase
from locktop.collector.render.words.row_filter import RowFilter
from locktop.collector.render.words.snapshot_index import SnapshotIndex, is_contention
from locktop.collector.render.words.source_location import short_location
from locktop.tui.screens.details_subject import DetailsSubject, Topic
from locktop.tui.typed_filter import TypedFilter
from locktop.tui.views import lock_list, thread_list
from locktop.tui.views.class_details import class_details
from locktop.tui.views.group_details import group_details
from locktop.tui.views.lock_details import lock_details
from locktop.tui.views.lock_list import LockRow
from locktop.tui.views.row_groups import MAX_INSIDE, More, RowGroups
from locktop.tui.views.sorting import SortKey, StableSorter, next_sort_key, sort_key_named
from locktop.tui.views.styled_line import Line
from locktop.tui.views.subject_graphs import LastMinutes
from locktop.tui.views.table import Cell, Column, Table, chosen, lay_out, whole_row
from locktop.tui.views.thread_details import thread_details
from locktop.tui.views.thread_list import ThreadRow
from locktop.tui.widgets.item_list import ItemList

Row = TypeVar("Row", LockRow, ThreadRow)


class Panel(Generic[Row]):
    """The logic of one list: order, filter, columns and open groups. A widget draws the list."""

    title = ""
    topic = Topic.LOCK
    sort_keys: Sequence[SortKey[Row]] = ()

    def __init__(self, widget: ItemList) -> None:
        self.widget = widget
        self.sort_by = self.sort_keys[0].name
        self.reversed = False
        self._sorter = StableSorter()
        self._groups = RowGroups()
        self._table: Table[Row] | None = None
        self._width = 0  # in cells, when the list was visible last
        #: The titles of the columns that the user chose; none: as many as fit.
        self.chosen_columns: tuple[str, ...] = ()
        #: The titles of all columns; none before the first drawing.
        self.titles: tuple[str, ...] = ()

    @property
    def visible(self) -> tuple[str, ...]:
        """The titles of the visible columns."""
        return tuple(column.title for column in self._table.columns) if self._table else ()

    @property
    def subject(self) -> DetailsSubject | None:
        """The subject of the row under the cursor, for the details."""
        row = self.widget.current
        return DetailsSubject(self.topic, row) if row is not None else None

    def begin(self, sort_by: str, columns: Sequence[str]) -> None:
        """Take the order and the columns at first. A sort key of another list changes nothing."""
        if any(key.name == sort_by for key in self.sort_keys):
            self.sort_by = sort_by
        self.chosen_columns = tuple(columns)

    # The rows

    def singles(self, index: SnapshotIndex) -> Mapping[int, Row]:
        """All single rows by id, also those in a group."""
        raise NotImplementedError

    def groups(self, index: SnapshotIndex) -> Mapping[Hashable, Row]:
        """All groups by key."""
        raise NotImplementedError

    def group_of(self, index: SnapshotIndex, id_: int) -> Hashable | None:
        """The key of the group that a single row is in, None without one."""
        raise NotImplementedError

    def grouped(self, index: SnapshotIndex) -> Container[int]:
        """The ids of the single rows in all groups."""
        raise NotImplementedError

    def inside(self, group: Row) -> Sequence[int]:
        """The ids of the single rows in a group."""
        raise NotImplementedError

    def count(self, row: Row) -> int:
        """The number of things that a row stands for."""
        raise NotImplementedError

    def idle(self, index: SnapshotIndex, row: Row) -> bool:
        """Whether a row only waits for work. Such rows are below the others, or hidden."""
        raise NotImplementedError

    def stuck(self, index: SnapshotIndex) -> frozenset[int]:
        """The ids of the rows in a deadlock. Such rows are above the others."""
        raise NotImplementedError

    def words(self, index: SnapshotIndex, row: Row) -> str:
        """The text that a filter searches."""
        raise NotImplementedError

    def mark(self, index: SnapshotIndex, row: Row) -> Cell:
        """The character before the row."""
        raise NotImplementedError

    def columns(self, index: SnapshotIndex) -> Sequence[Column[Row]]:
        """All columns."""
        raise NotImplementedError

    def details(
        self, index: SnapshotIndex, id_: int, minutes: LastMinutes | None = None
    ) -> tuple[str, Iterable[Line]] | None:
        """The title and the lines of the details of a row, None if the row is gone.

        ``minutes``: for the graphs.
        """
        raise NotImplementedError

    def lock(self, index: SnapshotIndex) -> Lock | None:
        """The one lock that the row under the cursor is about, None without one."""
        raise NotImplementedError

    def members(self, index: SnapshotIndex, id_: int) -> Sequence[int]:
        """The ids of the single rows of a group; () if the group is gone, or of a single row."""
        group = self.groups(index).get(self._groups.key_of(id_))
        return self.inside(group) if group is not None else ()

    def row_of_most(self, index: SnapshotIndex, ids: Iterable[int]) -> int | None:
        """The id of the row that has most of these single rows in this snapshot; None: of none."""
        present = [id_ for id_ in ids if id_ in self.singles(index)]
        keys = Counter(self.group_of(index, id_) for id_ in present)
        if not keys:
            return None
        key, _ = keys.most_common(1)[0]
        if key is not None:
            return self._groups.id_of(key)
        alone = [id_ for id_ in present if self.group_of(index, id_) is None]
        return max(alone, key=lambda id_: self.weight(index, id_))

    def weight(self, index: SnapshotIndex, id_: int) -> tuple[float, float]:
        """How much a single row matters; the greatest matters most."""
        raise NotImplementedError

    def row_text(self, index: SnapshotIndex) -> str:
        """The row under the cursor as plain text, with all columns; "" without a row."""
        current = self.widget.current or 0
        row = self.singles(index).get(current) or self.groups(index).get(
            self._groups.key_of(current)
        )
        return whole_row(self.columns(index), row) if row is not None else self.widget.current_text

    # Keys

    def next_sort_key(self) -> None:
        """Sort by the next visible column."""
        self.sort_by = next_sort_key(self.sort_keys, self.sort_by)
        while self._table is not None and not self._table.has(
            sort_key_named(self.sort_keys, self.sort_by).column
        ):
            self.sort_by = next_sort_key(self.sort_keys, self.sort_by)
        self.reversed = False
        self.sort_now()

    def reverse(self) -> None:
        """Reverse the order."""
        self.reversed = not self.reversed
        self.sort_now()

    def sort_now(self) -> None:
        """Sort at the next drawing."""
        self._sorter.sort_now()

    def set_open(self, index: SnapshotIndex, is_open: bool) -> None:
        """Open the group under the cursor or go into it; or close it or go out of it."""
        current = self.widget.current
        if current is None:
            return
        self.widget.chosen = True
        key = self._key_at(index, current)
        if key is None:
            return
        if current != self._groups.id_of(key):
            if not is_open:
                self.widget.choose(self._groups.id_of(key))
        elif is_open and self._groups.is_open(key):
            self.widget.move(1)
        else:
            self._groups.set_open(key, is_open)

    def _key_at(self, index: SnapshotIndex, id_: int) -> Hashable | None:
        """The key of the group that a row is, or is in; None without one."""
        key = self._groups.key_of(id_)
        return key if key in self.groups(index) else self.group_of(index, id_)

    # Drawing

    def has_column(self, title: str) -> bool:
        """Whether the column is visible now."""
        return self._table is not None and self._table.has(title)

    def draw(self, index: SnapshotIndex, typed: TypedFilter, show_idle: bool, now: float) -> None:
        """Update the widget.

        Args:
            index: the snapshot.
            typed: the filter.
            show_idle: whether to show rows that only wait for work.
            now: seconds on a monotonic clock.
        """
        if not self.widget.display:
            return
        self._groups.begin(sort=self._sorter.is_due(now))
        rows = self._rows(index)
        wanted = typed.filter
        hidden = set() if show_idle else self._idle_ones(index, rows)
        visible = [
            id_
            for id_, row in rows.items()
            if id_ not in hidden and (not wanted or self.is_match(index, row, wanted))
        ]
        ids = self._sorter.arrange(visible, now, lambda: self._sort(index, rows, visible))
        every = self.columns(index)
        self.titles = tuple(column.title for column in every if column.title)
        columns = chosen(every, self.chosen_columns)
        # A hidden list has no width. Other columns would be painted when it is visible again.
        self._width = self.widget.size.width or self._width
        table = self._table = lay_out(columns, self._width)
        sort_by = sort_key_named(self.sort_keys, self.sort_by)
        idle = sum(self.count(rows[id_]) for id_ in hidden)
        left = sum(map(self.count, rows.values())) - sum(self.count(rows[id_]) for id_ in visible)
        self.widget.set_heads(
            self.title, self._caption(typed, left - idle, idle), table.heading(sort_by.column)
        )
        self._show_rows(index, {id_: rows[id_] for id_ in ids}, table)

    def _rows(self, index: SnapshotIndex) -> dict[int, Row]:
        """All groups, and all single rows that are in no group."""
        groups, singles = self.groups(index), self.singles(index)
        if not groups:
            return dict(singles)
        rows = {self._groups.id_of(key): group for key, group in groups.items()}
        grouped = self.grouped(index)
        rows.update({id_: row for id_, row in singles.items() if id_ not in grouped})
        return rows

    def _idle_ones(self, index: SnapshotIndex, rows: Mapping[int, Row]) -> set[int]:
        """The ids of the rows hidden as idle; none where the idle ones are not known."""
        if index.dormant or index.snapshot.ended:
            return set()
        stuck = self._stuck(index)
        return {id_ for id_, row in rows.items() if self.idle(index, row) and id_ not in stuck}

    def _show_rows(self, index: SnapshotIndex, rows: Mapping[int, Row], table: Table[Row]) -> None:
        """Show ``rows`` in this order, with the rows of the open groups."""
        visible: dict[int, Row | More] = {}
        for id_, row in rows.items():
            visible[id_] = row
            key = self._groups.key_of(id_)
            if key is not None:
                visible.update(self._inside(index, key, row))

        def line(id_: int) -> Line:
            row = visible[id_]
            return row.line() if isinstance(row, More) else table.line(row, self.mark(index, row))

        before = self.widget.current
        self.widget.show(list(visible), line)
        if self.widget.chosen and before is not None and before not in visible:
            key = self.group_of(index, before)
            if key is not None:
                self.widget.choose(self._groups.id_of(key), by_itself=True)

    def _inside(self, index: SnapshotIndex, key: Hashable, group: Row) -> dict[int, Row | More]:
        """The rows below that of a group. A row in a deadlock is always visible."""
        singles = self.singles(index)
        if not self._groups.is_open(key):
            stuck = self.stuck(index)
            return (
                {id_: singles[id_] for id_ in self.inside(group) if id_ in stuck} if stuck else {}
            )
        visible = {
            id_: singles[id_] for id_ in self._groups.filtered_ids(key) or self.inside(group)
        }
        ids = self._groups.arrange(key, list(visible), lambda: self._sort(index, visible, visible))
        rows: dict[int, Row | More] = {id_: visible[id_] for id_ in ids[:MAX_INSIDE]}
        if len(ids) > MAX_INSIDE:
            rows[self._groups.id_of_more(key)] = More(len(ids) - MAX_INSIDE)
        return rows

    def is_match(self, index: SnapshotIndex, row: Row, wanted: RowFilter) -> bool:
        """Whether a filter finds the row.

        A filter that finds rows in a group finds the group and opens it.
        """
        if isinstance(row, (Lock, Thread)):
            return wanted.finds(index, row, self.words(index, row))
        if not wanted.terms and wanted.finds_words(self.words(index, row)):
            return True
        singles = self.singles(index)
        matching = [id_ for id_ in self.inside(row) if self.is_match(index, singles[id_], wanted)]
        if matching:
            key = self.group_of(index, matching[0])
            self._groups.open_for(key, matching)
        return bool(matching)

    def _stuck(self, index: SnapshotIndex) -> frozenset[int]:
        """The ids of the rows in a deadlock, and of their groups."""
        stuck = self.stuck(index)
        keys = {self.group_of(index, id_) for id_ in stuck} - {None}
        return stuck | {self._groups.id_of(key) for key in keys}

    def _sort(
        self, index: SnapshotIndex, rows: Mapping[int, Row], visible: Iterable[int]
    ) -> list[int]:
        if len(rows) < 2:  # the key of a group is that of its first thread: one of hundreds
            return list(visible)
        key = sort_key_named(self.sort_keys, self.sort_by).row_key(index)
        ordered = sorted(visible, key=lambda id_: key(rows[id_]), reverse=self.reversed)
        # In either direction deadlocked rows stay at the top and idle rows below. Sorting is
        # stable.
        stuck = self._stuck(index)
        return sorted(ordered, key=lambda id_: (id_ not in stuck, self.idle(index, rows[id_])))

    def _caption(self, typed: TypedFilter, left_out: int, idle: int) -> str:
        if typed.error:
            return f"filter: {typed.error}"
        parts = [f"by {self.sort_by}{', reversed' if self.reversed else ''}"]
        if typed.filter:
            parts.append(f"with “{typed.filter.text}”")
        if left_out:
            parts.append(f"{left_out} hidden")
        if idle:
            parts.append(f"{idle} idle hidden (i)")
        return ", ".join(parts)


class LockPanel(Panel[LockRow]):
    """The list of locks. The locks of a class are one row until the user opens it."""

    title = "Locks"
    sort_keys = lock_list.SORT_KEYS

    def __init__(self, widget: ItemList) -> None:
        super().__init__(widget)
        #: The pressure of a lock in phases, for its details.
        self.pressure: Callable[[Snapshot, Lock], Sequence[PressurePhase] | None] = lambda *_: None

    def singles(self, index: SnapshotIndex) -> Mapping[int, LockRow]:
        return index.locks

    def groups(self, index: SnapshotIndex) -> Mapping[Hashable, LockRow]:
        return index.classes

    def group_of(self, index: SnapshotIndex, id_: int) -> Hashable | None:
        lock_class = index.class_of.get(id_)
        return (lock_class.kind, lock_class.name) if lock_class is not None else None

    def grouped(self, index: SnapshotIndex) -> Container[int]:
        return index.class_of

    def inside(self, group: LockRow) -> Sequence[int]:
        return group.locks if isinstance(group, LockClass) else ()

    def count(self, row: LockRow) -> int:
        """See Panel: a class counts as one."""
        return 1

    def idle(self, index: SnapshotIndex, row: LockRow) -> bool:
        """See Panel: threads wait for work at a condition variable or a semaphore."""
        locks = row.locks if isinstance(row, LockClass) else (row.id,)
        return not is_contention(row) and index.unsignalled.isdisjoint(locks)

    def stuck(self, index: SnapshotIndex) -> frozenset[int]:
        return index.stuck_locks

    def words(self, index: SnapshotIndex, row: LockRow) -> str:
        tids = (*row.holders, *row.waiters)
        name = row.name if isinstance(row, LockClass) else index.lock_name(row.id)
        return " ".join([name, row.kind.value, *(index.thread_name(tid) for tid in tids)])

    def mark(self, index: SnapshotIndex, row: LockRow) -> Cell:
        return lock_list.mark(index, row)

    def columns(self, index: SnapshotIndex) -> Sequence[Column[LockRow]]:
        return lock_list.columns(
            index, lambda lock_class: self._groups.is_open((lock_class.kind, lock_class.name))
        )

    def details(
        self, index: SnapshotIndex, id_: int, minutes: LastMinutes | None = None
    ) -> tuple[str, Iterable[Line]] | None:
        row = index.locks.get(id_) or self.groups(index).get(self._groups.key_of(id_))
        if isinstance(row, Lock):
            phases = self.pressure(index.snapshot, row)
            return "of a lock", lock_details(index, row, phases, minutes)
        return ("of a class of locks", class_details(index, row, minutes)) if row else None

    def locks(self, index: SnapshotIndex, id_: int) -> Sequence[Lock]:
        """The lock of a row, or the locks of a class."""
        if lock := index.locks.get(id_):
            return (lock,)
        row = self.groups(index).get(self._groups.key_of(id_))
        return index.members(row) if isinstance(row, LockClass) else ()

    def lock(self, index: SnapshotIndex) -> Lock | None:
        return index.locks.get(self.widget.current or 0)

    def weight(self, index: SnapshotIndex, id_: int) -> tuple[float, float]:
        lock = index.locks[id_]
        return len(lock.waiters), lock.wait_s


class ThreadPanel(Panel[ThreadRow]):
    """The list of threads. Threads that do the same are one row until the user opens it."""

    title = "Threads"
    topic = Topic.THREAD
    sort_keys = thread_list.SORT_KEYS

    def singles(self, index: SnapshotIndex) -> Mapping[int, ThreadRow]:
        return index.threads

    def groups(self, index: SnapshotIndex) -> Mapping[Hashable, ThreadRow]:
        return index.groups

    def group_of(self, index: SnapshotIndex, id_: int) -> Hashable | None:
        group = index.group_of.get(id_)
        return group.key if group is not None else None

    def grouped(self, index: SnapshotIndex) -> Container[int]:
        return index.group_of

    def inside(self, group: ThreadRow) -> Sequence[int]:
        return group.tids if isinstance(group, ThreadGroup) else ()

    def count(self, row: ThreadRow) -> int:
        return len(thread_list.threads_of(row))

    def idle(self, index: SnapshotIndex, row: ThreadRow) -> bool:
        return index.is_idle(row)

    def stuck(self, index: SnapshotIndex) -> frozenset[int]:
        return index.stuck_threads

    def words(self, index: SnapshotIndex, row: ThreadRow) -> str:
        thread = thread_list.threads_of(row)[0]
        tid = "" if isinstance(row, ThreadGroup) else str(row.tid)
        words = [row.name, tid, thread_list.state_word(index, thread)]
        frame = index.wait_frame(thread)
        words += [short_location(frame)] if frame is not None else []
        if thread.waiting_for is not None:
            words.append(index.lock_name(thread.waiting_for.lock))
            words += [index.thread_name(tid) for tid in thread.waiting_for.holders]
        words += [index.lock_name(held.lock) for held in thread.holds]
        return " ".join(words)

    def mark(self, index: SnapshotIndex, row: ThreadRow) -> Cell:
        return thread_list.mark(index, row)

    def columns(self, index: SnapshotIndex) -> Sequence[Column[ThreadRow]]:
        return thread_list.columns(index, lambda group: self._groups.is_open(group.key))

    def closest(self, index: SnapshotIndex, id_: int) -> int:
        """The tid of the thread that a row has, or of one thread of a group; 0 without one."""
        row = index.threads.get(id_) or self.groups(index).get(self._groups.key_of(id_))
        return min(thread.tid for thread in thread_list.threads_of(row)) if row else 0

    def details(
        self, index: SnapshotIndex, id_: int, minutes: LastMinutes | None = None
    ) -> tuple[str, Iterable[Line]] | None:
        row = index.threads.get(id_) or self.groups(index).get(self._groups.key_of(id_))
        if isinstance(row, Thread):
            return "of a thread", thread_details(index, row, minutes)
        return ("of threads that do the same", group_details(index, row)) if row else None

    def lock(self, index: SnapshotIndex) -> Lock | None:
        """The lock that the thread waits for, else the last lock that other threads want of it."""
        thread = index.threads.get(self.closest(index, self.widget.current or 0))
        if thread is None:
            return None
        if thread.waiting_for is not None:
            return index.locks.get(thread.waiting_for.lock)
        held = [index.locks[hold.lock] for hold in thread.holds if hold.lock in index.locks]
        return next((lock for lock in reversed(held) if lock.waiters), None)

    def weight(self, index: SnapshotIndex, id_: int) -> tuple[float, float]:
        wait = index.threads[id_].waiting_for
        return float(wait is not None and not wait.idle), wait.duration_s if wait else 0.0
