"""The contents of the blocking tree: which rows are open, and their details."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from locktop.collector.model import BlockingRoot, Lock, RootKind
from locktop.collector.render.words import blocking as blocking_rows
from locktop.collector.render.words.blocking import BlockingRow
from locktop.collector.render.words.row_filter import RowFilter
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.extension_parts import StepElsewhere
from locktop.tui.screens.details_subject import DetailsSubject, Topic
from locktop.tui.typed_filter import TypedFilter
from locktop.tui.views import blocking
from locktop.tui.views.cells import counted
from locktop.tui.views.deadlock_details import deadlock_details
from locktop.tui.views.lock_details import lock_details
from locktop.tui.views.row_groups import RowGroups
from locktop.tui.views.sorting import StableSorter
from locktop.tui.views.styled_line import Line, cut, make_line
from locktop.tui.views.subject_graphs import LastMinutes
from locktop.tui.views.table import Table, lay_out, whole_row
from locktop.tui.views.thread_details import thread_details
from locktop.tui.widgets.item_list import ItemList

_Key = tuple[Hashable, ...]
#: The begin of the key of a line below a root.
_ABOUT = "about"
#: The begin of the key of a step in another process, followed by its number and the key of a row.
_STEP = "step"
#: The first thread of a process, of which the tree tells if no thread waits for a lock.
_MAIN = 0


class BlockingPanel:
    """The logic of the tree, with the methods of ``Panel`` that the monitor calls.

    The order is that of the tree: the most waiting comes first, so no key sorts the rows.
    """

    title = "Blocking"

    def __init__(self, widget: ItemList) -> None:
        self.widget = widget
        self._sorter = StableSorter()
        self._ids = RowGroups()  # numbers of the rows that are no threads
        #: Rows that the user opened or closed, other than at first.
        self._changed: set[_Key] = set()
        self._rows: dict[int, BlockingRow] = {}
        self._parents: dict[int, int] = {}
        self._table: Table[BlockingRow] | None = None
        #: Returns the steps of threads of a process to other processes, by tid.
        self.elsewhere: Callable[[int, Sequence[int]], Mapping[int, Sequence[StepElsewhere]]] = (
            lambda pid, tids: {}
        )
        self._steps: dict[int, StepElsewhere] = {}  # by row
        self._pid = 0  # the watched process

    @property
    def subject(self) -> DetailsSubject | None:
        """The subject of the row under the cursor, for the details."""
        current = self.widget.current
        if current is None:
            return None
        row = self._rows.get(current)
        root = row.root if row is not None else None
        is_holder = root is not None and root.kind is RootKind.HOLDER
        return DetailsSubject(Topic.BLOCKING, current, root.lock if root and is_holder else 0)

    @property
    def process_elsewhere(self) -> int:
        """The pid of the step under the cursor; 0: the row is no step, or one of this process."""
        step = self._steps.get(self.widget.current or 0)
        return step.pid if step is not None and step.pid != self._pid else 0

    # Keys

    def next_sort_key(self) -> None:
        """Do nothing: the tree has one order."""

    def reverse(self) -> None:
        """Do nothing: the root with the most waiting stays at the top."""

    def sort_now(self) -> None:
        """Put the roots in order at the next drawing."""
        self._sorter.sort_now()

    def set_open(self, index: SnapshotIndex, is_open: bool) -> None:
        """Open the row under the cursor or go into it; or close it or go to its parent."""
        current = self.widget.current
        row = self._rows.get(current) if current is not None else None
        if current is None or row is None:
            return
        self.widget.chosen = True
        if row.is_open is None or (row.is_open is is_open and not is_open):
            parent = self._parents.get(current)
            if not is_open and parent is not None:
                self.widget.choose(parent)
        elif row.is_open is is_open:
            self.widget.move(1)
        else:
            self._changed ^= {row.key}

    # Drawing

    def has_column(self, title: str) -> bool:
        """Whether the column is visible now."""
        return self._table is not None and self._table.has(title)

    def draw(self, index: SnapshotIndex, typed: TypedFilter, show_idle: bool, now: float) -> None:
        """Update the widget. See Panel. A thread that waits for work is in no tree."""
        if not self.widget.display:
            return
        width = self.widget.size.width
        table = self._table = lay_out(blocking.columns(index), width)
        trees = self._trees(index, typed.filter, width)
        order = self._sorter.arrange(list(trees), now, lambda: list(trees))
        self._rows = {id_: row for root in order for id_, row in trees[root].items()}
        self.widget.set_heads(self.title, self._caption(index, typed), table.heading())

        def line(id_: int) -> Line:
            row = self._rows[id_]
            if id_ in self._steps:
                return cut(make_line(f"    → {self._steps[id_].text}"), width)
            if row.key[0] == _ABOUT and row.root is not None:
                return cut(blocking.about_line(index, row.root), width)
            return table.line(row, blocking.mark(index, row))

        self.widget.show(list(self._rows), line)

    def _trees(
        self, index: SnapshotIndex, wanted: RowFilter, width: int
    ) -> dict[int, dict[int, BlockingRow]]:
        """The visible rows by id, in the tree of each root; fill in ``_parents``."""
        self._parents, self._steps = {}, {}
        tids = [tid for root in index.blocking.roots if (tid := _holder(index, root))]
        self._pid = index.snapshot.process.pid
        steps = self.elsewhere(self._pid, tids if index.blocking.roots else [_MAIN])
        trees: dict[int, dict[int, BlockingRow]] = {}
        rows: dict[int, BlockingRow] | None = None
        path: list[int] = []
        classes = index.class_of
        holder = 0  # of the roots alike that these rows are in
        for row in blocking_rows.rows(index.blocking, index.threads, self._is_open, classes):
            id_ = self._id_of(row.key)
            if row.depth == 0:
                roots = _roots(row)
                holder = 0
                is_match = any(self._is_match(index, root, wanted) for root in roots)
                rows = {} if not wanted or is_match else None
                if rows is not None:
                    trees[id_] = rows
            if rows is None:
                continue
            rows[id_] = row
            del path[row.depth :]
            if path:
                self._parents[id_] = path[-1]
            path.append(id_)
            if row.depth == 0 and width < blocking.WIDE:
                about = BlockingRow((_ABOUT, *row.key), 1, roots[0])
                rows[self._id_of(about.key)] = about
                self._parents[self._id_of(about.key)] = id_
            own_holder = _common_holder(index, row)
            if own_holder not in (0, holder):  # else the steps are above
                for step_id, step_row in self._step_rows(row, steps.get(own_holder, ())[1:]):
                    rows[step_id] = step_row
                    self._parents[step_id] = id_
            holder = own_holder if row.roots else holder
        if not trees and not wanted:
            main = BlockingRow(("thread", self._pid), 0)
            trees |= {id_: {id_: row} for id_, row in self._step_rows(main, steps.get(_MAIN, ()))}
        return trees

    def _step_rows(
        self, row: BlockingRow, steps: Sequence[StepElsewhere]
    ) -> Iterator[tuple[int, BlockingRow]]:
        for number, step in enumerate(steps):
            key = (_STEP, number, *row.key)
            id_ = self._id_of(key)
            self._steps[id_] = step
            yield id_, BlockingRow(key, 1, row.root)

    def _is_open(self, key: _Key) -> bool:
        return blocking_rows.is_open_at_first(key) != (key in self._changed)

    def _id_of(self, key: _Key) -> int:
        """The number of a row: of a thread its tid, of others a number below 0."""
        if key[0] == "thread" and isinstance(key[1], int) and key[1] > 0:
            return key[1]
        return self._ids.id_of(key)

    def _is_match(self, index: SnapshotIndex, root: BlockingRoot, wanted: RowFilter) -> bool:
        """Whether a filter finds a lock of the root or a thread of its tree."""
        locks = [index.locks[id_] for id_ in root.locks if id_ in index.locks]
        if any(wanted.finds(index, lock, index.lock_name(lock.id)) for lock in locks):
            return True
        tids = chain(root.tids, (waiter.tid for waiter in index.blocking.walk(root)))
        threads = (index.threads[tid] for tid in tids if tid in index.threads)
        return any(
            wanted.finds(index, thread, self._words(index, thread.tid)) for thread in threads
        )

    def _words(self, index: SnapshotIndex, tid: int) -> str:
        waiter = index.blocking.waiters.get(tid)
        lock = index.lock_name(waiter.lock) if waiter is not None else ""
        return f"{index.thread_name(tid)} {tid} {lock}"

    def _caption(self, index: SnapshotIndex, typed: TypedFilter) -> str:
        if typed.error:
            return f"filter: {typed.error}"
        tree = index.blocking
        if not tree.roots:
            if index.dormant:
                return "not known: the library is dormant"
            but = ", but for another process" if self._steps else ""
            return f"no wait for a lock is observed now{but}"
        caption = f"{len(tree.waiters)} waiting behind {counted(len(tree.roots), 'root')}"
        return f"{caption}, with “{typed.filter.text}”" if typed.filter else caption

    # The row under the cursor

    def row_text(self, index: SnapshotIndex) -> str:
        """The row under the cursor as plain text, with all columns; "" without a row."""
        row = self._rows.get(self.widget.current or 0)
        if row is None or row.key[0] in (_ABOUT, _STEP):
            return self.widget.current_text
        return whole_row(blocking.columns(index), row)

    def details(
        self, index: SnapshotIndex, id_: int, minutes: LastMinutes | None = None
    ) -> tuple[str, Iterable[Line]] | None:
        """The title and the lines of the details of a row, None if the row is gone. See Panel."""
        row = self._present_row(index, id_)
        if row is None:
            thread = index.threads.get(id_)
            if thread is None:
                return None
            return "of a thread", thread_details(index, thread, minutes)
        if row.root is not None and row.root.kind is RootKind.CYCLE:
            return "of a cycle", _cycle_lines(index, row.root)
        before = blocking.behind_lines(index, row)
        if row.root is not None and row.root.kind is RootKind.LOCK:
            lock = index.locks.get(row.root.lock)
            if lock is None:
                return "of a lock", before
            return "of a lock", chain(before, lock_details(index, lock, minutes=minutes))
        thread = index.threads.get(self.closest(index, id_))
        if thread is None:
            return "of a holder", before
        return "of a thread", chain(before, thread_details(index, thread, minutes))

    def closest(self, index: SnapshotIndex, id_: int) -> int:
        """The tid of the thread that a row has, or of the first one; 0 without one."""
        row = self._present_row(index, id_)
        if row is None:
            return id_ if id_ in index.threads else 0
        if row.root is not None:
            return row.root.tids[0] if row.root.tids else 0
        if row.key[0] == _STEP and isinstance(row.key[-1], int):
            return row.key[-1]
        return row.waiters[0].tid if row.waiters else 0

    def lock_root(self, index: SnapshotIndex, id_: int) -> int:
        """The id of the lock of a root without a known holder; 0: the row is another one."""
        row = self._present_row(index, id_)
        root = row.root if row is not None else None
        return root.lock if root is not None and root.kind is RootKind.LOCK else 0

    def _present_row(self, index: SnapshotIndex, id_: int) -> BlockingRow | None:
        """The row as of this snapshot, None if it is gone. A hidden list is not drawn anew."""
        row = self._rows.get(id_)
        if row is None or self.widget.display:
            return row
        if row.key[0] == _STEP:
            return row
        key = row.key[1:] if row.key[0] == _ABOUT else row.key
        rows = blocking_rows.rows(index.blocking, index.threads, self._is_open, index.class_of)
        return next((present for present in rows if present.key == key), None)

    def lock(self, index: SnapshotIndex) -> Lock | None:
        """The lock that the row under the cursor is about: held by a root, else waited for."""
        row = self._rows.get(self.widget.current or 0)
        if row is None or (row.root is None and not row.waiters):
            return None
        id_ = row.root.lock if row.root is not None else row.waiters[0].lock
        return index.locks.get(id_)


def _roots(row: BlockingRow) -> tuple[BlockingRoot, ...]:
    return row.roots or ((row.root,) if row.root is not None else ())


def _common_holder(index: SnapshotIndex, row: BlockingRow) -> int:
    """The tid of the holder of the root of a row, or of all its roots; 0 without one."""
    holders = {_holder(index, root) for root in _roots(row)}
    return holders.pop() if len(holders) == 1 else 0


def _holder(index: SnapshotIndex, root: BlockingRoot) -> int:
    """The tid of the thread at a root, or of the probable holder of its lock; 0 if not known."""
    if root.kind is RootKind.HOLDER:
        return root.tids[0]
    lock = index.locks.get(root.lock) if root.kind is RootKind.LOCK else None
    named = index.holder_of(lock) if lock is not None else None
    return named.tids[0] if named is not None and named.tids else 0


def _cycle_lines(index: SnapshotIndex, root: BlockingRoot) -> Iterable[Line]:
    """The details of a cycle: those of its deadlock, if a report has it."""
    reports = [
        report
        for report in index.deadlock_reports
        if not {member.tid for member in report.circle}.isdisjoint(root.tids)
    ]
    return deadlock_details(index, reports) if reports else blocking.cycle_lines(index, root)
