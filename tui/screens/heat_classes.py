"""Rows of the heat map that stand for a class of locks, which the user opens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from locktop.collector.analysis.heat_map import add_rows
from locktop.collector.model import LockClass
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.views.row_groups import INSIDE, MAX_INSIDE, RowGroups, label


class HeatRow(Struct, frozen=True):
    """One row."""

    name: str
    sums: Sequence[int]  # nanoseconds waited in each cell


class HeatClasses:
    """Folds the locks of a class that threads waited for, if these are at least two."""

    def __init__(self) -> None:
        self._groups = RowGroups()
        self._members: dict[int, frozenset[int]] = {}  # the locks of each class, by its row
        self._names: dict[int, str] = {}  # of classes, by their rows

    def rows(
        self, sums: Mapping[int, Sequence[int]], index: SnapshotIndex, words: str
    ) -> dict[int, HeatRow]:
        """Return the rows in their order, by the id of the lock or of the row of a class.

        Args:
            sums: the nanoseconds in each cell by lock, the most waited first.
            index: has the classes and the names.
            words: of the filter, in small letters. A class shows its locks that match.
        """
        waited: dict[int, list[int]] = {}
        for lock in sums:
            lock_class = index.class_of.get(lock)
            if lock_class is not None:
                waited.setdefault(self._id(lock_class), []).append(lock)
        blocks: list[dict[int, HeatRow]] = []
        seen: set[int] = set()
        for lock in sums:
            lock_class = index.class_of.get(lock)
            row_id = self._id(lock_class) if lock_class is not None else 0
            if lock_class is None or len(waited[row_id]) < 2:
                if words in index.lock_name(lock).lower():
                    blocks.append({lock: HeatRow(index.lock_name(lock), sums[lock])})
            elif row_id not in seen:
                seen.add(row_id)
                block = dict(self._block(lock_class, waited[row_id], sums, index, words))
                blocks += [block] if block else []
        # The first row of a block has all of it.
        blocks.sort(key=lambda block: -sum(next(iter(block.values())).sums))
        return {id_: row for block in blocks for id_, row in block.items()}

    def _block(
        self,
        lock_class: LockClass,
        waited: Sequence[int],
        sums: Mapping[int, Sequence[int]],
        index: SnapshotIndex,
        words: str,
    ) -> Iterator[tuple[int, HeatRow]]:
        """Yield the row of a class, and those of its locks if it is open."""
        row_id, key = self._id(lock_class), (lock_class.kind, lock_class.name)
        self._members[row_id] = frozenset(lock_class.locks)
        self._names[row_id] = lock_class.name
        names = {lock: index.name_in_class(index.locks[lock], lock_class) for lock in waited}
        is_open = self._groups.is_open(key)
        if words not in lock_class.name.lower():
            waited, is_open = [lock for lock in waited if words in names[lock].lower()], True
        if not waited:
            return
        name = label(lock_class.name, len(lock_class.locks), "locks", is_open)
        yield row_id, HeatRow(name, add_rows([sums[lock] for lock in waited]))
        if is_open:
            for lock in waited[:MAX_INSIDE]:
                yield lock, HeatRow(INSIDE + names[lock], sums[lock])

    def _id(self, lock_class: LockClass) -> int:
        return self._groups.id_of((lock_class.kind, lock_class.name))

    def locks(self, id_: int) -> frozenset[int]:
        """Return the locks of a row; none for 0, which stands for all."""
        return self._members.get(id_, frozenset({id_} if id_ else ()))

    def name(self, id_: int, index: SnapshotIndex) -> str:
        """Return the name of a lock or of a class, by its row."""
        return self._names.get(id_) or index.lock_name(id_)

    def switch(self, id_: int) -> bool:
        """Open or close the class with this row; return whether it is one."""
        key = self._groups.key_of(id_)
        if key is None:
            return False
        self._groups.set_open(key, not self._groups.is_open(key))
        return True
