"""The common parts of all sections of the text report: names, stacks, figures of rows, tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from locktop.collector.analysis import lock_classes, thread_groups
from locktop.collector.analysis.blame_chains import BlameChains
from locktop.collector.model import Frame, Kind, Lock, LockClass, Snapshot
from locktop.collector.render.documents import snapshot_intervals
from locktop.collector.render.documents.snapshot_locks import LockInterval
from locktop.collector.render.words import elsewhere, likely_holder, unit_takers, units
from locktop.collector.render.words.lock_kind import name_with_kind
from locktop.collector.render.words.named_holder import Certainty
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.render.words.source_location import full_location

Row = Lock | LockClass
_MAX_LOCKS = 20
#: Frames of a stack that a section prints.
MAX_FRAMES = 30


class ReportContext:
    """A snapshot with the indexes and names that all sections of the report use."""

    def __init__(self, snapshot: Snapshot, before: Snapshot | None) -> None:
        self.snapshot = snapshot
        self.before = {lock.id: lock for lock in before.locks} if before else None
        self.span_s = snapshot.duration_s - (before.duration_s if before else 0.0)
        self.threads = {thread.tid: thread for thread in snapshot.threads}
        self.threads_elsewhere = {thread.tid: thread for thread in snapshot.threads_elsewhere}
        self.locks = {lock.id: lock for lock in snapshot.locks}
        self.class_of = lock_classes.classes_by_lock(lock_classes.find(snapshot.locks))
        self.groups = thread_groups.find(snapshot.threads, self.locks, self.class_of)

    @cached_property
    def blame_chains(self) -> BlameChains:
        """The blame chains of the snapshot."""
        return BlameChains(self.locks)

    @cached_property
    def index(self) -> SnapshotIndex:
        """The snapshot with its indexes."""
        return SnapshotIndex(self.snapshot)

    def taken_units(self, lock_id: int) -> str:
        """Return who took the units of a semaphore, "" if that is not known."""
        lock = self.locks.get(lock_id)
        is_semaphore = lock is not None and lock.kind is Kind.SEM
        return unit_takers.phrase(self.index, lock_id) if is_semaphore else ""

    def likely_holder(self, lock: Lock) -> str:
        """Return the likely holder of a lock, and what it does; "" without one.

        "; the only thread that does not wait: loader, in read(3 -> /var/lib/x/index)"
        """
        named = self.index.holder_of(lock)
        if named is None or named.certainty is not Certainty.LIKELY:
            return ""
        (tid,) = named.tids
        return likely_holder.phrase(self.threads[tid], self.thread(tid), named.why)

    def members(self, row: Row) -> list[Lock]:
        """Return the locks of a row: those of a class, or the one lock."""
        return [self.locks[id_] for id_ in row.locks] if isinstance(row, LockClass) else [row]

    def figures(self, lock: Row) -> Row | LockInterval:
        """Return the figures of a row, with an earlier scan those of the interval."""
        if self.before is None:
            return lock
        return snapshot_intervals.class_interval(self.members(lock), self.before)

    def contention_s(self, lock: Row) -> float:
        """Return the seconds of waits that were contention."""
        figures = self.figures(lock)
        return figures.wait_s - figures.idle_s

    def rows_of(self, locks: Iterable[Lock]) -> list[Row]:
        """Return each class once, at the position of its first lock, and the other locks."""
        rows: dict[int, Row] = {}
        for lock in locks:
            lock_class = self.class_of.get(lock.id)
            rows[lock_class.locks[0] if lock_class else lock.id] = lock_class or lock
        return list(rows.values())

    def rows_with_waits(self) -> list[Row]:
        """Return the rows with contention, most wait first."""
        waited = [lock for lock in self.snapshot.locks if lock.wait_s or lock.contended]
        contended = self.rows_of(lock for lock in waited if not lock.idle)
        contended.sort(key=lambda row: -self.contention_s(row))
        return contended[:_MAX_LOCKS]

    @property
    def when(self) -> str:
        """The end of a heading."""
        return "AT THE END" if self.snapshot.ended else "NOW"

    def stack(self, stack: int, indent: str, max_frames: int = MAX_FRAMES) -> Iterator[str]:
        """Yield the frames of the stack with this id."""
        yield from self.frames(self.snapshot.stacks.get(stack, ()), indent, max_frames)

    def frames(
        self, frames: Sequence[Frame], indent: str = "      ", max_frames: int = MAX_FRAMES
    ) -> Iterator[str]:
        """Yield one line for each of the first ``max_frames`` frames, innermost first."""
        for frame in frames[:max_frames]:
            yield indent + full_location(frame) + (" (inlined)" if frame.inlined else "")
        if len(frames) > max_frames > 1:
            yield f"{indent}and {units.counted(len(frames) - max_frames, 'frame')} more"

    def thread(self, tid: int) -> str:
        """Return the tid and name of a thread."""
        thread, other = self.threads.get(tid), self.threads_elsewhere.get(tid)
        if thread is None and other is not None:
            return elsewhere.full_name(other)
        return f"thread {tid} ({thread.name})" if thread and thread.name else f"thread {tid}"

    def threads_named(self, tids: Sequence[int]) -> str:
        """Return the first three threads, and how many more there are."""
        named = ", ".join(self.thread(tid) for tid in tids[:3])
        return f"{named} and {len(tids) - 3} more" if len(tids) > 3 else named

    def kind(self, lock: int) -> Kind:
        """Return the kind of the lock with this id; a mutex if it is not known."""
        entry = self.locks.get(lock)
        return entry.kind if entry is not None else Kind.MUTEX

    def lock(self, lock: int) -> str:
        """Return the kind and name of the lock with this id."""
        entry = self.locks.get(lock)
        if entry is None:
            return f"lock {lock}"
        name = lock_classes.single_name(entry, self.class_of.get(lock))
        return add_kind(entry, add_type(entry, name))

    def row_name(self, row: Row) -> str:
        """Return the kind and name of a row, and of a class how many locks it has."""
        if not isinstance(row, LockClass):
            return self.lock(row.id)
        return f"{add_kind(row, row.name)}, {units.counted(len(row.locks), 'lock')}"


def add_type(lock: Lock, name: str) -> str:
    """Return the name and the type of a lock, unless the name begins with the type."""
    return name if name.startswith(lock.type) else f"{name} ({lock.type})"


def add_kind(row: Row, name: str) -> str:
    """Return the kind of a row and its name, unless the name begins with the kind."""
    return name_with_kind(row.kind, name)


def waiting_count(lock: Row) -> str:
    """Return how many threads wait, "" for none."""
    return f"{len(lock.waiters)} waiting" if lock.waiters else ""


def table(headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    """Yield a table: the last two columns have words, to the left; the others figures."""
    widths = [max(len(row[i]) for row in [headings, *rows]) for i in range(len(headings))]
    for row in [headings, *rows]:
        cells = [
            cell.ljust(size) if i >= len(headings) - 2 else cell.rjust(size)
            for i, (cell, size) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  " + "  ".join(cells)
