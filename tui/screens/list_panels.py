"""What the two lists show: which things, in what order, as which lines.

What is alike is one row until it is opened: locks of one class, threads that do the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from locktop.collector.analysis.lock_classes import LockClass
from locktop.collector.analysis.thread_groups import ThreadGroup
from locktop.collector.format.source_location import short_location
from locktop.collector.model import Lock, Thread
from locktop.tui.views import lock_list, thread_list
from locktop.tui.views.class_details import class_details
from locktop.tui.views.group_details import group_details
from locktop.tui.views.lock_details import lock_details
from locktop.tui.views.lock_list import LockRow
from locktop.tui.views.row_groups import MAX_INSIDE, Folds, More
from locktop.tui.views.snapshot_index import SnapshotIndex, is_contention
from locktop.tui.views.sorting import Order, Ordering, matches, named, next_order
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
    orders: Sequence[Order[Row]] = ()

    def __init__(self, widget: ItemList) -> None:
        self.widget = widget
        self.order = self.orders[0].name
        self.reversed = False
        self._ordering = Ordering()
        self._folds = Folds()
        self._table: Table[Row] | None = None

    # What there is to show

    def singles(self, picture: SnapshotIndex) -> Mapping[int, Row]:
        """All things, by id, those that are in a fold too."""
        raise NotImplementedError

    def folds(self, picture: SnapshotIndex) -> Mapping[Hashable, Row]:
        """What has one row for many things, by its key."""
        raise NotImplementedError

    def fold_of(self, picture: SnapshotIndex, id_: int) -> Hashable | None:
        """The key of the fold that a thing is in, None if it is in none."""
        raise NotImplementedError

    def inside(self, fold: Row) -> Sequence[int]:
        """The ids of the things in a fold."""
        raise NotImplementedError

    def count(self, row: Row) -> int:
        """How many things it stands for."""
        raise NotImplementedError

    def idle(self, picture: SnapshotIndex, row: Row) -> bool:
        """Whether it only waits for work: such are below the others, or hidden."""
        raise NotImplementedError

    def stuck(self, picture: SnapshotIndex) -> frozenset[int]:
        """The ids of those in a deadlock: such are above the others."""
        raise NotImplementedError

    def words(self, picture: SnapshotIndex, row: Row) -> str:
        """The text that a filter looks at."""
        raise NotImplementedError

    def mark(self, picture: SnapshotIndex, row: Row) -> Cell:
        """The character before the line."""
        raise NotImplementedError

    def columns(self, picture: SnapshotIndex) -> Sequence[Column[Row]]:
        """All columns."""
        raise NotImplementedError

    def details(self, picture: SnapshotIndex, id_: int) -> tuple[str, Iterable[Line]] | None:
        """What kind of thing has the id, and all about it; None if it is no longer there."""
        raise NotImplementedError

    # Keys

    def next_order(self) -> str:
        """Sort by the next column that is shown; gives its name."""
        self.order = next_order(self.orders, self.order)
        while self._table is not None and not self._table.has(
            named(self.orders, self.order).column
        ):
            self.order = next_order(self.orders, self.order)
        self.reversed = False
        self.upset()
        return self.order

    def reverse(self) -> None:
        """Turn the order around."""
        self.reversed = not self.reversed
        self.upset()

    def upset(self) -> None:
        """Sort at once, not when it is next due."""
        self._ordering.upset()

    def set_open(self, picture: SnapshotIndex, is_open: bool) -> None:
        """Open the fold under the cursor, or go into it; or close it, or go out of it."""
        current = self.widget.current
        if current is None:
            return
        self.widget.chosen = True
        key = self._key_at(picture, current)
        if key is None:
            return
        if current != self._folds.id_of(key):
            if not is_open:
                self.widget.choose(self._folds.id_of(key))
        elif is_open and self._folds.is_open(key):
            self.widget.move(1)
        else:
            self._folds.set_open(key, is_open)

    def _key_at(self, picture: SnapshotIndex, id_: int) -> Hashable | None:
        """The fold that a row is of or in, None without one."""
        key = self._folds.key_of(id_)
        return key if key in self.folds(picture) else self.fold_of(picture, id_)

    # Drawing

    def has_column(self, title: str) -> bool:
        """Whether there is room for a column now."""
        return self._table is not None and self._table.has(title)

    def draw(self, picture: SnapshotIndex, wanted: str, show_idle: bool, now: float) -> None:
        """Bring the widget up to date; ``now`` is seconds on a monotonic clock."""
        if not self.widget.display:
            return
        self._folds.begin(sort=self._ordering.due(now))
        rows = self._rows(picture)
        hidden = set() if show_idle else self._idle_ones(picture, rows)
        shown = [
            id_
            for id_, row in rows.items()
            if id_ not in hidden and (not wanted or self.found(picture, row, wanted))
        ]
        ids = self._ordering.arrange(shown, now, lambda: self._sorted(picture, rows, shown))
        table = self._table = lay_out(self.columns(picture), self.widget.size.width)
        order = named(self.orders, self.order)
        idle = sum(self.count(rows[id_]) for id_ in hidden)
        left = sum(map(self.count, rows.values())) - sum(self.count(rows[id_]) for id_ in shown)
        self.widget.set_heads(
            self.title, self._said(wanted, left - idle, idle), table.heading(order.column)
        )
        self._show_rows(picture, {id_: rows[id_] for id_ in ids}, table)

    def _rows(self, picture: SnapshotIndex) -> dict[int, Row]:
        """All folds, and all things that are in none."""
        folds, singles = self.folds(picture), self.singles(picture)
        if not folds:
            return dict(singles)
        rows = {self._folds.id_of(key): fold for key, fold in folds.items()}
        for id_, row in singles.items():
            if self.fold_of(picture, id_) is None:
                rows[id_] = row
        return rows

    def _idle_ones(self, picture: SnapshotIndex, rows: Mapping[int, Row]) -> set[int]:
        """The ids of what is hidden as idle: nothing where that is not known to be so."""
        if picture.dormant or picture.snapshot.ended:
            return set()
        stuck = self._stuck(picture)
        return {id_ for id_, row in rows.items() if self.idle(picture, row) and id_ not in stuck}

    def _show_rows(
        self, picture: SnapshotIndex, rows: Mapping[int, Row], table: Table[Row]
    ) -> None:
        """Show ``rows``, in this order, with the rows of what is open."""
        seen: dict[int, Row | More] = {}
        for id_, row in rows.items():
            seen[id_] = row
            key = self._folds.key_of(id_)
            if key is not None:
                seen.update(self._inside(picture, key, row))

        def line(id_: int) -> Line:
            row = seen[id_]
            return row.line() if isinstance(row, More) else table.line(row, self.mark(picture, row))

        before = self.widget.current
        self.widget.show(list(seen), line)
        if self.widget.chosen and before is not None and before not in seen:
            key = self.fold_of(picture, before)
            if key is not None:
                self.widget.choose(self._folds.id_of(key), by_itself=True)

    def _inside(self, picture: SnapshotIndex, key: Hashable, fold: Row) -> dict[int, Row | More]:
        """The rows below that of a fold. What is in a deadlock has one always."""
        singles = self.singles(picture)
        if not self._folds.is_open(key):
            stuck = self.stuck(picture)
            return {id_: singles[id_] for id_ in self.inside(fold) if id_ in stuck} if stuck else {}
        found = {id_: singles[id_] for id_ in self._folds.found(key) or self.inside(fold)}
        ids = self._folds.arrange(key, list(found), lambda: self._sorted(picture, found, found))
        rows: dict[int, Row | More] = {id_: found[id_] for id_ in ids[:MAX_INSIDE]}
        if len(ids) > MAX_INSIDE:
            rows[self._folds.id_of_more(key)] = More(len(ids) - MAX_INSIDE)
        return rows

    def found(self, picture: SnapshotIndex, row: Row, wanted: str) -> bool:
        """Whether a filter with the words ``wanted`` finds it: a fold is found, and opened, for
        what is in it too."""
        if matches(self.words(picture, row), wanted):
            return True
        singles = self.singles(picture)
        found = [
            id_ for id_ in self.inside(row) if matches(self.words(picture, singles[id_]), wanted)
        ]
        if found:
            key = self.fold_of(picture, found[0])
            self._folds.open_for(key, found)
        return bool(found)

    def _stuck(self, picture: SnapshotIndex) -> frozenset[int]:
        """The same with the folds that they are in."""
        stuck = self.stuck(picture)
        keys = {self.fold_of(picture, id_) for id_ in stuck} - {None}
        return stuck | {self._folds.id_of(key) for key in keys}

    def _sorted(
        self, picture: SnapshotIndex, rows: Mapping[int, Row], shown: Iterable[int]
    ) -> list[int]:
        key = named(self.orders, self.order).key
        found = sorted(shown, key=lambda id_: key(rows[id_]), reverse=self.reversed)
        # Whichever way the rest is turned, the deadlocked stay on top and the idle below.
        # Sorting is stable.
        stuck = self._stuck(picture)
        return sorted(found, key=lambda id_: (id_ not in stuck, self.idle(picture, rows[id_])))

    def _said(self, wanted: str, left_out: int, idle: int) -> str:
        parts = [f"by {self.order}{', reversed' if self.reversed else ''}"]
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
    orders = lock_list.ORDERS

    def singles(self, picture: SnapshotIndex) -> Mapping[int, LockRow]:
        """See Panel."""
        return picture.locks

    def folds(self, picture: SnapshotIndex) -> Mapping[Hashable, LockRow]:
        """See Panel."""
        return picture.classes

    def fold_of(self, picture: SnapshotIndex, id_: int) -> Hashable | None:
        """See Panel."""
        of = picture.class_of.get(id_)
        return (of.kind, of.name) if of is not None else None

    def inside(self, fold: LockRow) -> Sequence[int]:
        """See Panel."""
        return fold.locks if isinstance(fold, LockClass) else ()

    def count(self, row: LockRow) -> int:
        """See Panel: a class counts as one, as its row does."""
        return 1

    def idle(self, picture: SnapshotIndex, row: LockRow) -> bool:
        """See Panel: a condition variable or a semaphore is where threads wait for work."""
        return not is_contention(row)

    def stuck(self, picture: SnapshotIndex) -> frozenset[int]:
        """See Panel."""
        return picture.stuck_locks

    def words(self, picture: SnapshotIndex, row: LockRow) -> str:
        """See Panel."""
        tids = (*row.holders, *row.waiters)
        name = row.name if isinstance(row, LockClass) else picture.lock_name(row.id)
        return " ".join([name, row.kind.value, *(picture.thread_name(tid) for tid in tids)])

    def mark(self, picture: SnapshotIndex, row: LockRow) -> Cell:
        """See Panel."""
        return lock_list.mark(picture, row)

    def columns(self, picture: SnapshotIndex) -> Sequence[Column[LockRow]]:
        """See Panel."""
        return lock_list.columns(picture, lambda of: self._folds.is_open((of.kind, of.name)))

    def details(self, picture: SnapshotIndex, id_: int) -> tuple[str, Iterable[Line]] | None:
        """See Panel."""
        found = picture.locks.get(id_) or self.folds(picture).get(self._folds.key_of(id_))
        if isinstance(found, Lock):
            return "of a lock", lock_details(picture, found)
        return ("of a class of locks", class_details(picture, found)) if found else None


class ThreadPanel(Panel[ThreadRow]):
    """The list of threads: those that do the same are one row until that is opened."""

    title = "Threads"
    orders = thread_list.ORDERS

    def singles(self, picture: SnapshotIndex) -> Mapping[int, ThreadRow]:
        """See Panel."""
        return picture.threads

    def folds(self, picture: SnapshotIndex) -> Mapping[Hashable, ThreadRow]:
        """See Panel."""
        return picture.groups

    def fold_of(self, picture: SnapshotIndex, id_: int) -> Hashable | None:
        """See Panel."""
        group = picture.group_of.get(id_)
        return group.key if group is not None else None

    def inside(self, fold: ThreadRow) -> Sequence[int]:
        """See Panel."""
        return fold.tids if isinstance(fold, ThreadGroup) else ()

    def count(self, row: ThreadRow) -> int:
        """See Panel."""
        return len(thread_list.threads_of(row))

    def idle(self, picture: SnapshotIndex, row: ThreadRow) -> bool:
        """See Panel."""
        return picture.is_idle(row)

    def stuck(self, picture: SnapshotIndex) -> frozenset[int]:
        """See Panel."""
        return picture.stuck_threads

    def words(self, picture: SnapshotIndex, row: ThreadRow) -> str:
        """See Panel."""
        thread = thread_list.threads_of(row)[0]
        tid = "" if isinstance(row, ThreadGroup) else str(row.tid)
        words = [row.name, tid, thread_list.state_word(picture, thread)]
        frame = picture.wait_frame(thread)
        words += [short_location(frame)] if frame is not None else []
        if thread.waiting_for is not None:
            words.append(picture.lock_name(thread.waiting_for.lock))
            words += [picture.thread_name(tid) for tid in thread.waiting_for.holders]
        words += [picture.lock_name(held.lock) for held in thread.holds]
        return " ".join(words)

    def mark(self, picture: SnapshotIndex, row: ThreadRow) -> Cell:
        """See Panel."""
        return thread_list.mark(picture, row)

    def columns(self, picture: SnapshotIndex) -> Sequence[Column[ThreadRow]]:
        """See Panel."""
        return thread_list.columns(picture, lambda group: self._folds.is_open(group.key))

    def closest(self, picture: SnapshotIndex, id_: int) -> int:
        """Return the tid of the thread that the details are about, or of one of them; 0: none."""
        row = picture.threads.get(id_) or self.folds(picture).get(self._folds.key_of(id_))
        return min(thread.tid for thread in thread_list.threads_of(row)) if row else 0

    def details(self, picture: SnapshotIndex, id_: int) -> tuple[str, Iterable[Line]] | None:
        """See Panel."""
        found = picture.threads.get(id_) or self.folds(picture).get(self._folds.key_of(id_))
        if isinstance(found, Thread):
            return "of a thread", thread_details(picture, found)
        return ("of threads that do the same", group_details(picture, found)) if found else None


AnyPanel = LockPanel | ThreadPanel
