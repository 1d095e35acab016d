"""What the two lists show: which things, in what order, as which lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from locktop.collector.analysis.lock_classes import LockClass
from locktop.collector.model import Thread
from locktop.tui.lines import lock_list, thread_list
from locktop.tui.lines.class_details import class_details
from locktop.tui.lines.class_rows import MOST_INSIDE, Classes, More
from locktop.tui.lines.lock_details import lock_details
from locktop.tui.lines.lock_list import LockRow
from locktop.tui.lines.order import Order, Ordering, matches, named, next_order
from locktop.tui.lines.picture import Picture, is_contention, place
from locktop.tui.lines.runs import Line
from locktop.tui.lines.table import Cell, Column, Table, lay_out
from locktop.tui.lines.thread_details import thread_details
from locktop.tui.widgets.item_list import ItemList

T = TypeVar("T", LockRow, Thread)


class Panel(Generic[T]):
    """One list: its order, its filter and its columns, apart from the widget that shows it."""

    title = ""
    orders: Sequence[Order[T]] = ()

    def __init__(self, widget: ItemList) -> None:
        self.widget = widget
        self.order = self.orders[0].name
        self.reversed = False
        self._ordering = Ordering()
        self._table: Table[T] | None = None

    def items(self, picture: Picture) -> dict[int, T]:
        """All things that have a row of their own, by id."""
        raise NotImplementedError

    def idle(self, item: T) -> bool:
        """Whether it only waits for work: such are below the others, or hidden."""
        raise NotImplementedError

    def stuck(self, picture: Picture) -> frozenset[int]:
        """The ids of those in a deadlock: such are above the others."""
        raise NotImplementedError

    def words(self, picture: Picture, item: T) -> str:
        """The text that a filter looks at."""
        raise NotImplementedError

    def found(self, picture: Picture, item: T, wanted: str) -> bool:
        """Whether a filter with the words ``wanted`` finds it."""
        return matches(self.words(picture, item), wanted)

    def mark(self, picture: Picture, item: T) -> Cell:
        """The character before the line."""
        raise NotImplementedError

    def columns(self, picture: Picture) -> Sequence[Column[T]]:
        """All columns."""
        raise NotImplementedError

    def details(self, picture: Picture, id_: int) -> tuple[str, Iterable[Line]] | None:
        """What kind of thing has the id, and all about it; None if it is no longer there."""
        raise NotImplementedError

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

    def draw(self, picture: Picture, wanted: str, show_idle: bool, now: float) -> None:
        """Bring the widget up to date; ``now`` is seconds on a monotonic clock."""
        if not self.widget.display:
            return
        items = self.items(picture)
        shown = [
            id_ for id_, item in items.items() if self._shown(picture, item, wanted, show_idle)
        ]
        ids = self._ordering.arrange(shown, now, lambda: self._sorted(picture, items, shown))
        table = self._table = lay_out(self.columns(picture), self.widget.size.width)
        order = named(self.orders, self.order)
        self.widget.set_heads(
            self.title, self._said(wanted, len(items) - len(shown)), table.heading(order.column)
        )
        self.show_rows(picture, {id_: items[id_] for id_ in ids}, table)

    def show_rows(self, picture: Picture, rows: Mapping[int, T], table: Table[T]) -> None:
        """Show ``rows``, in this order."""
        self.widget.show(
            list(rows), lambda id_: table.line(rows[id_], self.mark(picture, rows[id_]))
        )

    def _shown(self, picture: Picture, item: T, wanted: str, show_idle: bool) -> bool:
        if not show_idle and self.idle(item):
            return False
        return not wanted or self.found(picture, item, wanted)

    def _sorted(self, picture: Picture, items: Mapping[int, T], shown: Iterable[int]) -> list[int]:
        key = named(self.orders, self.order).key
        found = sorted(shown, key=lambda id_: key(items[id_]), reverse=self.reversed)
        # Whichever way the rest is turned, the deadlocked stay on top and the idle below.
        # Sorting is stable.
        stuck = self.stuck(picture)
        return sorted(found, key=lambda id_: (id_ not in stuck, self.idle(items[id_])))

    def _said(self, wanted: str, hidden: int) -> str:
        parts = [f"by {self.order}{', reversed' if self.reversed else ''}"]
        if wanted:
            parts.append(f"with “{wanted}”")
        if hidden:
            parts.append(f"{hidden} hidden")
        return ", ".join(parts)


class LockPanel(Panel[LockRow]):
    """The list of locks: those of one class are one row until that is opened."""

    title = "Locks"
    orders = lock_list.ORDERS

    def __init__(self, widget: ItemList) -> None:
        super().__init__(widget)
        self._classes = Classes()

    def items(self, picture: Picture) -> dict[int, LockRow]:
        """See Panel."""
        if not picture.classes:
            return dict(picture.locks)
        classes = {self._classes.id_of(found): found for found in picture.classes.values()}
        inside = picture.class_of
        return {
            **classes,
            **{id_: picture.locks[id_] for id_ in picture.locks if id_ not in inside},
        }

    def idle(self, item: LockRow) -> bool:
        """See Panel: a condition variable or a semaphore is where threads wait for work."""
        return not is_contention(item)

    def stuck(self, picture: Picture) -> frozenset[int]:
        """See Panel."""
        of = [picture.class_of[id_] for id_ in picture.stuck_locks if id_ in picture.class_of]
        return picture.stuck_locks | {self._classes.id_of(found) for found in of}

    def words(self, picture: Picture, item: LockRow) -> str:
        """See Panel."""
        tids = (*item.holders, *item.waiters)
        name = item.name if isinstance(item, LockClass) else picture.lock_name(item.id)
        return " ".join([name, item.kind.value, *(picture.thread_name(tid) for tid in tids)])

    def mark(self, picture: Picture, item: LockRow) -> Cell:
        """See Panel."""
        return lock_list.mark(picture, item)

    def columns(self, picture: Picture) -> Sequence[Column[LockRow]]:
        """See Panel."""
        return lock_list.columns(picture, self._classes.is_open)

    def details(self, picture: Picture, id_: int) -> tuple[str, Iterable[Line]] | None:
        """See Panel."""
        if id_ in picture.locks:
            return "of a lock", lock_details(picture, picture.locks[id_])
        found = self._classes.find(picture, id_)
        return ("of a class of locks", class_details(picture, found)) if found else None

    def set_open(self, picture: Picture, is_open: bool) -> None:
        """Open the class under the cursor, or go into it; or close it, or go out of it."""
        current = self.widget.current
        if current is None:
            return
        self.widget.chosen = True
        of = self._classes.find(picture, current) or picture.class_of.get(current)
        if of is None:
            return
        if current != self._classes.id_of(of):
            if not is_open:
                self.widget.choose(self._classes.id_of(of))
        elif is_open and self._classes.is_open(of):
            self.widget.move(1)
        else:
            self._classes.set_open(of, is_open)

    def draw(self, picture: Picture, wanted: str, show_idle: bool, now: float) -> None:
        """See Panel."""
        self._classes.begin(sort=self._ordering.due(now))
        super().draw(picture, wanted, show_idle, now)

    def show_rows(
        self, picture: Picture, rows: Mapping[int, LockRow], table: Table[LockRow]
    ) -> None:
        """See Panel: with the rows of what is open."""
        if not picture.classes:
            super().show_rows(picture, rows, table)
            return
        seen: dict[int, LockRow | More] = {}
        for id_, row in rows.items():
            seen[id_] = row
            if isinstance(row, LockClass):
                seen.update(self._inside(picture, row))

        def line(id_: int) -> Line:
            row = seen[id_]
            return row.line() if isinstance(row, More) else table.line(row, self.mark(picture, row))

        before = self.widget.current
        self.widget.show(list(seen), line)
        of = picture.class_of.get(before) if before is not None else None
        if self.widget.chosen and of is not None and before not in seen:
            self.widget.choose(self._classes.id_of(of))

    def _inside(self, picture: Picture, of: LockClass) -> dict[int, LockRow | More]:
        """The rows below that of a class. What is in a deadlock has one always."""
        if not self._classes.is_open(of):
            stuck = picture.stuck_locks
            return {id_: picture.locks[id_] for id_ in of.locks if id_ in stuck} if stuck else {}
        locks = {lock.id: lock for lock in self._classes.found(of) or picture.members(of)}
        ids = self._classes.arrange(of, list(locks), lambda: self._sorted(picture, locks, locks))
        rows: dict[int, LockRow | More] = {id_: locks[id_] for id_ in ids[:MOST_INSIDE]}
        if len(ids) > MOST_INSIDE:
            rows[self._classes.id_of_more(of)] = More(len(ids) - MOST_INSIDE)
        return rows

    def found(self, picture: Picture, item: LockRow, wanted: str) -> bool:
        """See Panel: a class is found, and opened, for the locks in it too."""
        if super().found(picture, item, wanted):
            return True
        if not isinstance(item, LockClass):
            return False
        locks = picture.members(item)
        found = [lock for lock in locks if self.found(picture, lock, wanted)]
        self._classes.open_for(item, found)
        return bool(found)


class ThreadPanel(Panel[Thread]):
    """The list of threads."""

    title = "Threads"
    orders = thread_list.ORDERS

    def items(self, picture: Picture) -> dict[int, Thread]:
        """See Panel."""
        return picture.threads

    def idle(self, item: Thread) -> bool:
        """See Panel."""
        return thread_list.is_idle(item)

    def stuck(self, picture: Picture) -> frozenset[int]:
        """See Panel."""
        return picture.stuck_threads

    def words(self, picture: Picture, item: Thread) -> str:
        """See Panel."""
        words = [item.name, str(item.tid), thread_list.state_word(picture, item)]
        frame = picture.wait_frame(item)
        words += [place(frame)] if frame is not None else []
        if item.waiting_for is not None:
            words.append(picture.lock_name(item.waiting_for.lock))
            words += [picture.thread_name(tid) for tid in item.waiting_for.holders]
        words += [picture.lock_name(held.lock) for held in item.holds]
        return " ".join(words)

    def mark(self, picture: Picture, item: Thread) -> Cell:
        """See Panel."""
        return thread_list.mark(picture, item)

    def columns(self, picture: Picture) -> Sequence[Column[Thread]]:
        """See Panel."""
        return thread_list.columns(picture)

    def details(self, picture: Picture, id_: int) -> tuple[str, Iterable[Line]] | None:
        """See Panel."""
        found = picture.threads.get(id_)
        return ("of a thread", thread_details(picture, found)) if found else None


AnyPanel = LockPanel | ThreadPanel
