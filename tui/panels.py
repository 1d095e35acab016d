"""What the two lists show: which things, in what order, as which lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

from locktop.collector.model import Lock, Thread
from locktop.tui.lines import lock_list, thread_list
from locktop.tui.lines.order import Order, Ordering, matches, named, next_order
from locktop.tui.lines.picture import Picture, is_contention, place
from locktop.tui.lines.table import Cell, Column, Table, lay_out
from locktop.tui.widgets.item_list import ItemList

T = TypeVar("T", Lock, Thread)


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
        """All things by id."""
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

    def mark(self, picture: Picture, item: T) -> Cell:
        """The character before the line."""
        raise NotImplementedError

    def columns(self, picture: Picture) -> Sequence[Column[T]]:
        """All columns."""
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
        ids = self._ordering.arrange(shown, now, lambda: self._sorted(picture, shown))
        table = self._table = lay_out(self.columns(picture), self.widget.size.width)
        order = named(self.orders, self.order)
        self.widget.set_heads(
            self.title, self._said(wanted, len(items) - len(shown)), table.heading(order.column)
        )
        self.widget.show(ids, lambda id_: table.line(items[id_], self.mark(picture, items[id_])))

    def _shown(self, picture: Picture, item: T, wanted: str, show_idle: bool) -> bool:
        if not show_idle and self.idle(item):
            return False
        return not wanted or matches(self.words(picture, item), wanted)

    def _sorted(self, picture: Picture, shown: Iterable[int]) -> list[int]:
        items = self.items(picture)
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


class LockPanel(Panel[Lock]):
    """The list of locks."""

    title = "Locks"
    orders = lock_list.ORDERS

    def items(self, picture: Picture) -> dict[int, Lock]:
        """See Panel."""
        return picture.locks

    def idle(self, item: Lock) -> bool:
        """See Panel: a condition variable or a semaphore is where threads wait for work."""
        return not is_contention(item)

    def stuck(self, picture: Picture) -> frozenset[int]:
        """See Panel."""
        return picture.stuck_locks

    def words(self, picture: Picture, item: Lock) -> str:
        """See Panel."""
        tids = (*item.holders, *item.waiters)
        return " ".join([item.name, item.kind.value, *(picture.thread_name(tid) for tid in tids)])

    def mark(self, picture: Picture, item: Lock) -> Cell:
        """See Panel."""
        return lock_list.mark(picture, item)

    def columns(self, picture: Picture) -> Sequence[Column[Lock]]:
        """See Panel."""
        return lock_list.columns(picture)


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


AnyPanel = LockPanel | ThreadPanel
