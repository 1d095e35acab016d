"""What the two lists show: which things, in what order, as which lines.

What is alike is one row until it is opened: locks of one class, threads that do the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from locktop.collector.format.snapshot_index import SnapshotIndex, is_contention
from locktop.collector.format.source_location import short_location
from locktop.collector.model import Lock, LockClass, Thread, ThreadGroup
from locktop.tui.views import lock_list, thread_list
from locktop.tui.views.class_details import class_details
from locktop.tui.views.group_details import group_details
from locktop.tui.views.lock_details import lock_details
from locktop.tui.views.lock_list import LockRow
from locktop.tui.views.row_groups import MAX_INSIDE, More, RowGroups
from locktop.tui.views.sorting import SortKey, StableSorter, matches, next_sort_key, sort_key_named
from locktop.tui.views.styled_line import Line
from locktop.tui.views.table import Cell, Column, Table, lay_out
from locktop.tui.views.thread_details import thread_details
from locktop.tui.views.thread_list import ThreadRow
from locktop.tui.widgets.item_list import ItemList

Row = TypeVar("Row", LockRow, ThreadRow)


class Panel(Generic[Row]):
    """One list: its order, its filter, its columns and what is open in it, apart from the widget
    that shows it."""

    title = ""
    sort_keys: Sequence[SortKey[Row]] = ()

    def __init__(self, widget: ItemList) -> None:
        self.widget = widget
        self.sort_by = self.sort_keys[0].name
        self.reversed = False
        self._sorter = StableSorter()
        self._groups = RowGroups()
        self._table: Table[Row] | None = None

    # What there is to show

    def singles(self, index: SnapshotIndex) -> Mapping[int, Row]:
        """All things, by id, those that are in a fold too."""
        raise NotImplementedError

    def groups(self, index: SnapshotIndex) -> Mapping[Hashable, Row]:
        """What has one row for many things, by its key."""
        raise NotImplementedError

    def group_of(self, index: SnapshotIndex, id_: int) -> Hashable | None:
        """The key of the fold that a thing is in, None if it is in none."""
        raise NotImplementedError

    def inside(self, group: Row) -> Sequence[int]:
        """The ids of the things in a fold."""
        raise NotImplementedError

    def count(self, row: Row) -> int:
        """How many things it stands for."""
        raise NotImplementedError

    def idle(self, index: SnapshotIndex, row: Row) -> bool:
        """Whether it only waits for work: such are below the others, or hidden."""
        raise NotImplementedError

    def stuck(self, index: SnapshotIndex) -> frozenset[int]:
        """The ids of those in a deadlock: such are above the others."""
        raise NotImplementedError

    def words(self, index: SnapshotIndex, row: Row) -> str:
        """The text that a filter looks at."""
        raise NotImplementedError

    def mark(self, index: SnapshotIndex, row: Row) -> Cell:
        """The character before the line."""
        raise NotImplementedError

    def columns(self, index: SnapshotIndex) -> Sequence[Column[Row]]:
        """All columns."""
        raise NotImplementedError

    def details(self, index: SnapshotIndex, id_: int) -> tuple[str, Iterable[Line]] | None:
        """What kind of thing has the id, and all about it; None if it is no longer there."""
        raise NotImplementedError

    # Keys

    def next_sort_key(self) -> str:
        """Sort by the next column that is shown; gives its name."""
        self.sort_by = next_sort_key(self.sort_keys, self.sort_by)
        while self._table is not None and not self._table.has(
            sort_key_named(self.sort_keys, self.sort_by).column
        ):
            self.sort_by = next_sort_key(self.sort_keys, self.sort_by)
        self.reversed = False
        self.sort_now()
        return self.sort_by

    def reverse(self) -> None:
        """Turn the order around."""
        self.reversed = not self.reversed
        self.sort_now()

    def sort_now(self) -> None:
        """Sort at once, not when it is next due."""
        self._sorter.sort_now()

    def set_open(self, index: SnapshotIndex, is_open: bool) -> None:
        """Open the fold under the cursor, or go into it; or close it, or go out of it."""
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
        """The fold that a row is of or in, None without one."""
        key = self._groups.key_of(id_)
        return key if key in self.groups(index) else self.group_of(index, id_)

    # Drawing

    def has_column(self, title: str) -> bool:
        """Whether there is room for a column now."""
        return self._table is not None and self._table.has(title)

    def draw(self, index: SnapshotIndex, wanted: str, show_idle: bool, now: float) -> None:
        """Bring the widget up to date; ``now`` is seconds on a monotonic clock."""
        if not self.widget.display:
            return
        self._groups.begin(sort=self._sorter.is_due(now))
        rows = self._rows(index)
        hidden = set() if show_idle else self._idle_ones(index, rows)
        visible = [
            id_
            for id_, row in rows.items()
            if id_ not in hidden and (not wanted or self.found(index, row, wanted))
        ]
        ids = self._sorter.arrange(visible, now, lambda: self._sorted(index, rows, visible))
        table = self._table = lay_out(self.columns(index), self.widget.size.width)
        sort_by = sort_key_named(self.sort_keys, self.sort_by)
        idle = sum(self.count(rows[id_]) for id_ in hidden)
        left = sum(map(self.count, rows.values())) - sum(self.count(rows[id_]) for id_ in visible)
        self.widget.set_heads(
            self.title, self._caption(wanted, left - idle, idle), table.heading(sort_by.column)
        )
        self._show_rows(index, {id_: rows[id_] for id_ in ids}, table)

    def _rows(self, index: SnapshotIndex) -> dict[int, Row]:
        """All folds, and all things that are in none."""
        groups, singles = self.groups(index), self.singles(index)
        if not groups:
            return dict(singles)
        rows = {self._groups.id_of(key): group for key, group in groups.items()}
        for id_, row in singles.items():
            if self.group_of(index, id_) is None:
                rows[id_] = row
        return rows

    def _idle_ones(self, index: SnapshotIndex, rows: Mapping[int, Row]) -> set[int]:
        """The ids of what is hidden as idle: nothing where that is not known to be so."""
        if index.dormant or index.snapshot.ended:
            return set()
        stuck = self._stuck(index)
        return {id_ for id_, row in rows.items() if self.idle(index, row) and id_ not in stuck}

    def _show_rows(self, index: SnapshotIndex, rows: Mapping[int, Row], table: Table[Row]) -> None:
        """Show ``rows``, in this order, with the rows of what is open."""
        seen: dict[int, Row | More] = {}
        for id_, row in rows.items():
            seen[id_] = row
            key = self._groups.key_of(id_)
            if key is not None:
                seen.update(self._inside(index, key, row))

        def line(id_: int) -> Line:
            row = seen[id_]
            return row.line() if isinstance(row, More) else table.line(row, self.mark(index, row))

        before = self.widget.current
        self.widget.show(list(seen), line)
        if self.widget.chosen and before is not None and before not in seen:
            key = self.group_of(index, before)
            if key is not None:
                self.widget.choose(self._groups.id_of(key), by_itself=True)

    def _inside(self, index: SnapshotIndex, key: Hashable, group: Row) -> dict[int, Row | More]:
        """The rows below that of a fold. What is in a deadlock has one always."""
        singles = self.singles(index)
        if not self._groups.is_open(key):
            stuck = self.stuck(index)
            return (
                {id_: singles[id_] for id_ in self.inside(group) if id_ in stuck} if stuck else {}
            )
        found = {id_: singles[id_] for id_ in self._groups.found(key) or self.inside(group)}
        ids = self._groups.arrange(key, list(found), lambda: self._sorted(index, found, found))
        rows: dict[int, Row | More] = {id_: found[id_] for id_ in ids[:MAX_INSIDE]}
        if len(ids) > MAX_INSIDE:
            rows[self._groups.id_of_more(key)] = More(len(ids) - MAX_INSIDE)
        return rows

    def found(self, index: SnapshotIndex, row: Row, wanted: str) -> bool:
        """Whether a filter with the words ``wanted`` finds it: a fold is found, and opened, for
        what is in it too."""
        if matches(self.words(index, row), wanted):
            return True
        singles = self.singles(index)
        found = [
            id_ for id_ in self.inside(row) if matches(self.words(index, singles[id_]), wanted)
        ]
        if found:
            key = self.group_of(index, found[0])
            self._groups.open_for(key, found)
        return bool(found)

    def _stuck(self, index: SnapshotIndex) -> frozenset[int]:
        """The same with the folds that they are in."""
        stuck = self.stuck(index)
        keys = {self.group_of(index, id_) for id_ in stuck} - {None}
        return stuck | {self._groups.id_of(key) for key in keys}

    def _sorted(
        self, index: SnapshotIndex, rows: Mapping[int, Row], visible: Iterable[int]
    ) -> list[int]:
        key = sort_key_named(self.sort_keys, self.sort_by).key
        found = sorted(visible, key=lambda id_: key(rows[id_]), reverse=self.reversed)
        # Whichever way the rest is turned, the deadlocked stay on top and the idle below.
        # Sorting is stable.
        stuck = self._stuck(index)
        return sorted(found, key=lambda id_: (id_ not in stuck, self.idle(index, rows[id_])))

    def _caption(self, wanted: str, left_out: int, idle: int) -> str:
        parts = [f"by {self.sort_by}{', reversed' if self.reversed else ''}"]
        if wanted:
            parts.append(f"with “{wanted}”")
        if left_out:
            parts.append(f"{left_out} hidden")
        if idle:
            parts.append(f"{idle} idle hidden (i)")
        return ", ".join(parts)


class LockPanel(Panel[LockRow]):
    """The list of locks: those of one class are one row until that is opened."""

    title = "Locks"
    sort_keys = lock_list.SORT_KEYS

    def singles(self, index: SnapshotIndex) -> Mapping[int, LockRow]:
        """See Panel."""
        return index.locks

    def groups(self, index: SnapshotIndex) -> Mapping[Hashable, LockRow]:
        """See Panel."""
        return index.classes

    def group_of(self, index: SnapshotIndex, id_: int) -> Hashable | None:
        """See Panel."""
        of = index.class_of.get(id_)
        return (of.kind, of.name) if of is not None else None

    def inside(self, group: LockRow) -> Sequence[int]:
        """See Panel."""
        return group.locks if isinstance(group, LockClass) else ()

    def count(self, row: LockRow) -> int:
        """See Panel: a class counts as one, as its row does."""
        return 1

    def idle(self, index: SnapshotIndex, row: LockRow) -> bool:
        """See Panel: a condition variable or a semaphore is where threads wait for work."""
        return not is_contention(row)

    def stuck(self, index: SnapshotIndex) -> frozenset[int]:
        """See Panel."""
        return index.stuck_locks

    def words(self, index: SnapshotIndex, row: LockRow) -> str:
        """See Panel."""
        tids = (*row.holders, *row.waiters)
        name = row.name if isinstance(row, LockClass) else index.lock_name(row.id)
        return " ".join([name, row.kind.value, *(index.thread_name(tid) for tid in tids)])

    def mark(self, index: SnapshotIndex, row: LockRow) -> Cell:
        """See Panel."""
        return lock_list.mark(index, row)

    def columns(self, index: SnapshotIndex) -> Sequence[Column[LockRow]]:
        """See Panel."""
        return lock_list.columns(index, lambda of: self._groups.is_open((of.kind, of.name)))

    def details(self, index: SnapshotIndex, id_: int) -> tuple[str, Iterable[Line]] | None:
        """See Panel."""
        found = index.locks.get(id_) or self.groups(index).get(self._groups.key_of(id_))
        if isinstance(found, Lock):
            return "of a lock", lock_details(index, found)
        return ("of a class of locks", class_details(index, found)) if found else None


class ThreadPanel(Panel[ThreadRow]):
    """The list of threads: those that do the same are one row until that is opened."""

    title = "Threads"
    sort_keys = thread_list.SORT_KEYS

    def singles(self, index: SnapshotIndex) -> Mapping[int, ThreadRow]:
        """See Panel."""
        return index.threads

    def groups(self, index: SnapshotIndex) -> Mapping[Hashable, ThreadRow]:
        """See Panel."""
        return index.groups

    def group_of(self, index: SnapshotIndex, id_: int) -> Hashable | None:
        """See Panel."""
        group = index.group_of.get(id_)
        return group.key if group is not None else None

    def inside(self, group: ThreadRow) -> Sequence[int]:
        """See Panel."""
        return group.tids if isinstance(group, ThreadGroup) else ()

    def count(self, row: ThreadRow) -> int:
        """See Panel."""
        return len(thread_list.threads_of(row))

    def idle(self, index: SnapshotIndex, row: ThreadRow) -> bool:
        """See Panel."""
        return index.is_idle(row)

    def stuck(self, index: SnapshotIndex) -> frozenset[int]:
        """See Panel."""
        return index.stuck_threads

    def words(self, index: SnapshotIndex, row: ThreadRow) -> str:
        """See Panel."""
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
        """See Panel."""
        return thread_list.mark(index, row)

    def columns(self, index: SnapshotIndex) -> Sequence[Column[ThreadRow]]:
        """See Panel."""
        return thread_list.columns(index, lambda group: self._groups.is_open(group.key))

    def closest(self, index: SnapshotIndex, id_: int) -> int:
        """Return the tid of the thread that the details are about, or of one of them; 0: none."""
        row = index.threads.get(id_) or self.groups(index).get(self._groups.key_of(id_))
        return min(thread.tid for thread in thread_list.threads_of(row)) if row else 0

    def details(self, index: SnapshotIndex, id_: int) -> tuple[str, Iterable[Line]] | None:
        """See Panel."""
        found = index.threads.get(id_) or self.groups(index).get(self._groups.key_of(id_))
        if isinstance(found, Thread):
            return "of a thread", thread_details(index, found)
        return ("of threads that do the same", group_details(index, found)) if found else None


AnyPanel = LockPanel | ThreadPanel
