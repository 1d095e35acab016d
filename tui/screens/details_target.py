"""The subject of the details panel of the monitor, and how it changes by itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from msgspec import Struct

from locktop.collector.model import OrderCycle
from locktop.collector.render.words import earlier_holder, elsewhere, lock_order
from locktop.collector.render.words.named_holder import Certainty
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.screens import source_line
from locktop.tui.screens.blocking_panel import BlockingPanel
from locktop.tui.screens.deadlock_panel import reports_of
from locktop.tui.screens.details_subject import DetailsSubject, Topic
from locktop.tui.screens.list_panels import LockPanel, ThreadPanel
from locktop.tui.views.deadlock_details import deadlock_details
from locktop.tui.views.former_holder import former_holder, last_hold
from locktop.tui.views.lock_order_details import has_lock_orders, lock_order_details
from locktop.tui.views.styled_line import Line, make_line
from locktop.tui.views.subject_graphs import LastMinutes

_GONE = " It is not there at this moment."
_OTHER_GROUP = " The row of before is not there at this moment. Most of it is here:"


class Followed(Struct, frozen=True):
    """The thread and the lock of which each scan measures more: tid and id, 0 for none."""

    thread: int
    lock: int


class DetailsTarget:
    """Chooses the target of the details: a row of a list, the deadlocks, or the lock orders.

    Without a target the row under the cursor of the list in use is the next one. A new deadlock
    becomes the target by itself. The user can walk on from a lock to its holder, and from a
    thread to its lock.
    """

    def __init__(self, locks: LockPanel, threads: ThreadPanel, blocking: BlockingPanel) -> None:
        self._locks = locks
        self._blocking = blocking
        self._threads = threads
        self._target: DetailsSubject | None = None
        self._walked: list[DetailsSubject] = []  # the targets before this one, the first one first
        self._had_deadlock = False
        #: The last row with several locks or threads that was the target, and their ids.
        self._row: tuple[DetailsSubject | None, Sequence[int]] = (None, ())
        #: Whether newer snapshots come to the screen: it is neither paused nor in the past.
        self.is_live = True

    @property
    def current(self) -> DetailsSubject | None:
        """The target, None while there is none."""
        return self._target

    @property
    def stays(self) -> bool:
        """Whether only a choice of the user leaves the target, and no move of the list."""
        return bool(self._walked) or (
            (self.is_about(Topic.DEADLOCKS) or self.is_about(Topic.LOCK_ORDERS))
            and self._target is not None
            and not self._target.row
        )

    def is_about(self, topic: Topic) -> bool:
        """Whether the target is of that topic."""
        return self._target is not None and self._target.topic is topic

    def clear(self) -> None:
        """Have no target, until the details are drawn next."""
        self.take(None)

    def take(self, subject: DetailsSubject | None) -> None:
        """Make ``subject`` the target; None for none."""
        self._target = subject
        self._walked.clear()

    # Walking

    def walk(self, index: SnapshotIndex) -> str:
        """Go from a lock to its holder, or from a thread to the lock that it waits for.

        Returns:
            Why the walk ends here; "" where it went on.
        """
        target = self._target
        if target is None:
            return "Nothing is chosen."
        following = self._next(index, target)
        if isinstance(following, str):
            return following
        self._walked.append(target)
        self._target = following
        return ""

    def walk_back(self) -> bool:
        """Go back to the target before; return False where the user did not walk."""
        if not self._walked:
            return False
        self._target = self._walked.pop()
        return True

    def _next(self, index: SnapshotIndex, target: DetailsSubject) -> DetailsSubject | str:
        if target.topic is Topic.LOCK:
            return self._holder_of_row(index, target.row)
        if target.topic is Topic.THREAD:
            return self._lock_of(index, self._threads.closest(index, target.row))
        if target.topic is Topic.BLOCKING:
            if lock_id := self._blocking.lock_root(index, target.row):
                return self._holder_of(index, lock_id)
            return self._lock_of(index, self._blocking.closest(index, target.row))
        if target.topic is Topic.DEADLOCKS and (reports := reports_of(index, target.row)):
            return DetailsSubject(Topic.THREAD, reports[0].circle[0].tid)
        return "A potential deadlock has no holder now."

    def _holder_of_row(self, index: SnapshotIndex, row: int) -> DetailsSubject | str:
        locks = self._locks.locks(index, row)
        waited = [lock for lock in locks if lock.waiters]
        if len(locks) > 1 and (not waited or any(lock.holders for lock in locks)):
            return "This row has several locks: open it with Right, and choose one."
        if not locks:
            return "The lock is no longer there."
        return self._holder_of(index, (waited or locks)[0].id)

    def _holder_of(self, index: SnapshotIndex, lock_id: int) -> DetailsSubject | str:
        lock = index.locks[lock_id]
        if not lock.holders:
            named, last = index.holder_of(lock), last_hold(index, lock_id)
            is_guess = named is not None and named.certainty is Certainty.LIKELY
            if last is not None and (named is None or is_guess):
                return DetailsSubject(Topic.THREAD, last.tid, lock_id)
            if named is not None:
                return DetailsSubject(Topic.THREAD, named.tids[0], lock_id)
            if (earlier := earlier_holder.find(index, lock)) is not None:
                return DetailsSubject(Topic.THREAD, earlier.tids[0], lock_id)
            pause = "; p pauses the screen" if self.is_live else ""
            return f"The holder of {lock.name} is not known, or nobody holds it{pause}."
        other = index.threads_elsewhere.get(lock.holders[0])
        if other is not None:
            return f"Another process holds it: {elsewhere.full_name(other)}."
        return DetailsSubject(Topic.THREAD, lock.holders[0], lock_id)

    def _lock_of(self, index: SnapshotIndex, tid: int) -> DetailsSubject | str:
        thread = index.threads.get(tid)
        if thread is None:
            return "The thread is no longer there."
        if thread.waiting_for is None:
            return f"{index.thread_name(tid)} waits for no lock: the chain ends here."
        return DetailsSubject(Topic.LOCK, thread.waiting_for.lock)

    # Deadlocks

    def follow_deadlock(self, index: SnapshotIndex, is_reading: bool) -> None:
        """Make a deadlock that is new in ``index`` the target, unless the user reads the details.

        A deadlock that is gone is a target no longer.
        """
        has_deadlock = bool(index.deadlocks)
        if has_deadlock and not self._had_deadlock and not is_reading:
            self.take(DetailsSubject(Topic.DEADLOCKS))
        if not has_deadlock and self.is_about(Topic.DEADLOCKS):
            self.clear()
        self._had_deadlock = has_deadlock

    def take_deadlock(self, index: SnapshotIndex, is_reading: bool) -> bool:
        """Make the deadlocks the target, or the lock orders after them.

        Args:
            index: the snapshot on the screen.
            is_reading: whether the details have the focus.

        Returns:
            False where there is neither.
        """
        deadlocked, has_orders = bool(index.deadlocks), has_lock_orders(index)
        is_read = is_reading and self.is_about(Topic.DEADLOCKS)
        if has_orders and (is_read or not deadlocked):
            self.take(DetailsSubject(Topic.LOCK_ORDERS))
        elif deadlocked:
            self.take(DetailsSubject(Topic.DEADLOCKS))
        return deadlocked or has_orders

    # The contents

    def followed(self, index: SnapshotIndex) -> Followed:
        """The thread or the lock that the details are about."""
        if self._target is None:
            return Followed(0, 0)
        topic, row = self._target.topic, self._target.row
        if topic is Topic.BLOCKING:
            return Followed(self._blocking.closest(index, row), 0)
        return Followed(
            self._threads.closest(index, row) if topic is Topic.THREAD else 0,
            row if topic is Topic.LOCK else 0,
        )

    def source_line(self, index: SnapshotIndex) -> tuple[str, int] | None:
        """The file and the line that the target is about; line 0 if only the file is known."""
        if self._target is None:
            return None
        topic, row = self._target.topic, self._target.row
        if topic is Topic.DEADLOCKS:
            return source_line.deadlock_line(index, row)
        if topic is Topic.LOCK_ORDERS:
            return source_line.lock_order_line(index, row)
        if topic is Topic.LOCK:
            locks = (source_line.lock_line(index, lock) for lock in self._locks.locks(index, row))
            return next(filter(None, locks), None)
        panel = self._threads if topic is Topic.THREAD else self._blocking
        return source_line.thread_line(index, panel.closest(index, row))

    def content(
        self, index: SnapshotIndex, minutes: LastMinutes | None = None
    ) -> tuple[str, Iterable[Line]]:
        """The title of the details and their lines; ``minutes``: for their graphs."""
        if self._target is None:
            return "", (make_line((" Nothing is chosen.", "dim")),)
        drawn = self._content(index, self._target, minutes)
        drawn = drawn or self._content_of_members(index, self._target, minutes)
        if drawn is None:
            drawn = "", (make_line((_GONE, "dim")),)
        if not self._walked:
            return drawn
        steps = len(self._walked)
        return f"{drawn[0]}, {steps} step{'s' * (steps > 1)} on; Esc: back", drawn[1]

    def _content(
        self, index: SnapshotIndex, target: DetailsSubject, minutes: LastMinutes | None
    ) -> tuple[str, Iterable[Line]] | None:
        if target.topic is Topic.DEADLOCKS:
            return self._deadlocks(index, target.row)
        if target.topic is Topic.LOCK_ORDERS:
            return self._lock_orders(index, target.row)
        panels: dict[Topic, LockPanel | ThreadPanel | BlockingPanel] = {
            Topic.LOCK: self._locks,
            Topic.THREAD: self._threads,
            Topic.BLOCKING: self._blocking,
        }
        drawn = panels[target.topic].details(index, target.row, minutes)
        if members := self._members(index, target):
            self._row = target, members
        if not target.lock:
            return drawn
        before = list(former_holder(index, target.row, target.lock, self.is_live))
        if drawn is None:
            return ("of a holder that has ended", before) if before else None
        return drawn[0], chain(before, drawn[1])

    def _members(self, index: SnapshotIndex, target: DetailsSubject) -> Sequence[int]:
        panel = self._list_of(target)
        return panel.members(index, target.row) if panel is not None else ()

    def _list_of(self, target: DetailsSubject) -> LockPanel | ThreadPanel | None:
        if target.topic is Topic.LOCK:
            return self._locks
        return self._threads if target.topic is Topic.THREAD else None

    def _content_of_members(
        self, index: SnapshotIndex, target: DetailsSubject, minutes: LastMinutes | None
    ) -> tuple[str, Iterable[Line]] | None:
        """The details of the row that has most of what a former row had.

        A jump to another time may end where the row is not: threads do something else there.
        """
        panel, (former, ids) = self._list_of(target), self._row
        row = panel.row_of_most(index, ids) if panel is not None and former == target else None
        drawn = (
            panel.details(index, row, minutes) if panel is not None and row is not None else None
        )
        if drawn is None:
            return None
        return drawn[0], chain([make_line((_OTHER_GROUP, "dim"))], drawn[1])

    @staticmethod
    def _deadlocks(index: SnapshotIndex, row: int) -> tuple[str, Iterable[Line]] | None:
        reports = reports_of(index, row)
        if not reports:
            return None
        more = len(lock_order.not_there(index.snapshot))
        also = f"; d: {more} potential" if more else ""
        return f"of the deadlock{also}", deadlock_details(index, reports)

    @staticmethod
    def _lock_orders(index: SnapshotIndex, row: int) -> tuple[str, Iterable[Line]] | None:
        if not has_lock_orders(index):
            return None
        if not row:
            return "of potential deadlocks", lock_order_details(index)
        cycles: list[OrderCycle] = lock_order.not_there(index.snapshot)[row - 1 : row]
        return ("of a potential deadlock", lock_order_details(index, cycles)) if cycles else None
