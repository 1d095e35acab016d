"""The subject of the details panel of the monitor, and how it changes by itself."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from locktop.collector.format import lock_order
from locktop.collector.format.snapshot_index import SnapshotIndex
from locktop.tui.screens.list_panels import AnyPanel, LockPanel, ThreadPanel
from locktop.tui.views.deadlock_details import deadlock_details
from locktop.tui.views.lock_order_details import has_lock_orders, lock_order_details
from locktop.tui.views.styled_line import Line, make_line


class Topic(Enum):
    """The kinds of things that the details can be about."""

    LOCK = "lock"  # a lock, or a class of locks
    THREAD = "thread"  # a thread, or a group of threads
    DEADLOCKS = "deadlocks"
    LOCK_ORDERS = "lock orders"  # the potential deadlocks


class DetailsSubject(NamedTuple):
    """One thing that the details are about."""

    topic: Topic
    row: int = 0  # id of a row of the list, 0 for what is in no list


class Followed(NamedTuple):
    """The thread and the lock of which each scan measures more: tid and id, 0 for none."""

    thread: int
    lock: int


class DetailsTarget:
    """Chooses the target of the details: a row of a list, the deadlocks, or the lock orders.

    Without a target the row under the cursor of the list in use is the next one. A new deadlock
    becomes the target by itself.
    """

    def __init__(self, locks: LockPanel, threads: ThreadPanel) -> None:
        self._locks = locks
        self._threads = threads
        self._target: DetailsSubject | None = None
        self._had_deadlock = False

    @property
    def current(self) -> DetailsSubject | None:
        """The target, None while there is none."""
        return self._target

    @property
    def is_in_no_list(self) -> bool:
        """Whether the target is in no list: only a choice of the user leaves such a target."""
        return self.is_about(Topic.DEADLOCKS) or self.is_about(Topic.LOCK_ORDERS)

    def is_about(self, topic: Topic) -> bool:
        """Whether the target is of that topic."""
        return self._target is not None and self._target.topic is topic

    def clear(self) -> None:
        """Have no target, until the details are drawn next."""
        self._target = None

    def take_row(self, panel: AnyPanel) -> None:
        """Make the row under the cursor of ``panel`` the target."""
        row = panel.widget.current
        topic = Topic.LOCK if panel is self._locks else Topic.THREAD
        self._target = DetailsSubject(topic, row) if row is not None else None

    def follow_deadlock(self, index: SnapshotIndex, is_reading: bool) -> None:
        """Make a deadlock that is new in ``index`` the target, unless the user reads the details.

        A deadlock that is gone is a target no longer.
        """
        has_deadlock = bool(index.snapshot.deadlocks)
        if has_deadlock and not self._had_deadlock and not is_reading:
            self._target = DetailsSubject(Topic.DEADLOCKS)
        if not has_deadlock and self.is_about(Topic.DEADLOCKS):
            self._target = None
        self._had_deadlock = has_deadlock

    def take_deadlock(self, index: SnapshotIndex, is_reading: bool) -> bool:
        """Make the deadlocks the target, or the lock orders after them.

        Args:
            index: the snapshot on the screen.
            is_reading: whether the details have the focus.

        Returns:
            False where there is neither.
        """
        deadlocked, has_orders = bool(index.snapshot.deadlocks), has_lock_orders(index)
        is_read = is_reading and self.is_about(Topic.DEADLOCKS)
        if has_orders and (is_read or not deadlocked):
            self._target = DetailsSubject(Topic.LOCK_ORDERS)
        elif deadlocked:
            self._target = DetailsSubject(Topic.DEADLOCKS)
        return deadlocked or has_orders

    def followed(self, index: SnapshotIndex) -> Followed:
        """The thread or the lock that the details are about."""
        if self._target is None:
            return Followed(0, 0)
        topic, row = self._target
        return Followed(
            self._threads.closest(index, row) if topic is Topic.THREAD else 0,
            row if topic is Topic.LOCK else 0,
        )

    def content(self, index: SnapshotIndex) -> tuple[str, Iterable[Line]]:
        """The title of the details and their lines."""
        if self._target is None:
            return "", (make_line((" Nothing is chosen.", "dim")),)
        topic, row = self._target
        if topic is Topic.DEADLOCKS:
            more = len(lock_order.not_there(index.snapshot))
            also = f"; d: {more} potential" if more else ""
            return f"of the deadlock{also}", deadlock_details(index)
        if topic is Topic.LOCK_ORDERS:
            found = self._lock_orders(index)
        else:
            panel = self._locks if topic is Topic.LOCK else self._threads
            found = panel.details(index, row)
        return found or ("", (make_line((" It is no longer there.", "dim")),))

    @staticmethod
    def _lock_orders(index: SnapshotIndex) -> tuple[str, Iterable[Line]] | None:
        if not has_lock_orders(index):
            return None
        return "of potential deadlocks", lock_order_details(index)
