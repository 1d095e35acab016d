"""The blocking tree as rows, and its sentences: the text report and the screen say the same."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from locktop.collector.analysis.thread_groups import common_name, family
from locktop.collector.model import (
    Behind,
    BlockingRoot,
    BlockingTree,
    BlockingWaiter,
    Lock,
    LockClass,
    RootKind,
    Thread,
    ThreadActivity,
)
from locktop.collector.render.words.units import counted, duration

#: Fewer threads that wait alike have rows of their own.
_MIN_OF_A_FAN = 3
#: Fewer roots alike have rows of their own.
_MIN_ROOTS = 3
#: An open fan shows no more threads.
MAX_INSIDE = 50
_FAN = "fan"
_ROOTS = "roots"
_NO_CLASSES: Mapping[int, LockClass] = MappingProxyType({})


class BlockingRow(Struct, frozen=True):
    """A root, a thread that waits, or a fan: threads that wait alike and block nobody.

    Or several roots alike: locks of one class, each with one waiter and without a known holder.
    """

    #: The same from one scan to the next: ("thread", tid), ("lock", id), ("cycle", tid), a fan.
    key: tuple[Hashable, ...]
    depth: int  # 0: a root
    root: BlockingRoot | None = None
    waiters: tuple[BlockingWaiter, ...] = ()  # one thread; of a fan the longest wait first
    name: str = ""  # of a fan: the common name of its threads; of roots: that of their locks
    roots: tuple[BlockingRoot, ...] = ()  # of several roots alike, with ``waiters``
    is_open: bool | None = None  # None: nothing is below the row
    left_out: int = 0  # the row only says that so many threads of a fan have no rows


def is_open_at_first(key: tuple[Hashable, ...]) -> bool:
    """Return whether a row is open until the user closes it: all but fans and roots alike."""
    return key[0] not in (_FAN, _ROOTS)


def rows(
    tree: BlockingTree,
    threads: Mapping[int, Thread],
    is_open: Callable[[tuple[Hashable, ...]], bool] = is_open_at_first,
    class_of: Mapping[int, LockClass] = _NO_CLASSES,
) -> Iterator[BlockingRow]:
    """Yield the rows of the open parts of the tree, from the top.

    Args:
        tree: the tree.
        threads: the threads by tid.
        is_open: returns whether the row of a key is open.
        class_of: the classes by the ids of their locks: roots of one class may share a row.
    """
    for roots in _roots_alike(tree, class_of):
        if len(roots) == 1:
            yield from root_rows(tree, roots[0], threads, is_open)
            continue
        lock_class = class_of[roots[0].lock]
        key = (_ROOTS, lock_class.name, lock_class.kind)
        waiters = tuple([tree.waiters[tid] for root in roots for tid in root.waiters])
        opened = is_open(key)
        yield BlockingRow(
            key, 0, waiters=waiters, name=lock_class.name, roots=roots, is_open=opened
        )
        if opened:
            for root in roots[:MAX_INSIDE]:
                for row in root_rows(tree, root, threads, is_open):
                    yield replace(row, depth=row.depth + 1)
            if len(roots) > MAX_INSIDE:
                yield BlockingRow(("more", *key), 1, left_out=len(roots) - MAX_INSIDE)


def _roots_alike(
    tree: BlockingTree, class_of: Mapping[int, LockClass]
) -> Sequence[tuple[BlockingRoot, ...]]:
    """Return the roots with those that are alike together, the most waiting first."""
    groups: dict[Hashable, list[BlockingRoot]] = {}
    for root in tree.roots:
        lock_class = class_of.get(root.lock)
        is_small = root.kind is RootKind.LOCK and root.behind.threads == 1
        key: Hashable = root.key
        if is_small and lock_class is not None:
            key = (lock_class.name, lock_class.kind)
        groups.setdefault(key, []).append(root)
    parts = [
        part
        for group in groups.values()
        for part in ([tuple(group)] if len(group) >= _MIN_ROOTS else [(root,) for root in group])
    ]
    return sorted(parts, key=lambda roots: -sum(root.behind.waited_s for root in roots))


def root_rows(
    tree: BlockingTree,
    root: BlockingRoot,
    threads: Mapping[int, Thread],
    is_open: Callable[[tuple[Hashable, ...]], bool] = is_open_at_first,
) -> Iterator[BlockingRow]:
    """Yield the rows of one root of the tree; see rows()."""
    layout = _Layout(tree, threads, is_open)
    key = root_key(root)
    yield BlockingRow(key, 0, root, is_open=is_open(key))
    open_ = layout.below(key, root.waiters, 1) if is_open(key) else []
    while open_:
        row = open_.pop()
        yield row
        if row.is_open:
            open_ += layout.inside(row)


def root_key(root: BlockingRoot) -> tuple[Hashable, ...]:
    """Return the key of the row of a root."""
    return ("thread", root.tids[0]) if root.kind is RootKind.HOLDER else root.key


class _Layout:
    """Makes the rows below a row, in reverse: the last one is the uppermost."""

    def __init__(
        self,
        tree: BlockingTree,
        threads: Mapping[int, Thread],
        is_open: Callable[[tuple[Hashable, ...]], bool],
    ) -> None:
        self._tree = tree
        self._threads = threads
        self._is_open = is_open

    def inside(self, row: BlockingRow) -> list[BlockingRow]:
        """Return the rows below an open row."""
        if not row.name:
            return self.below(row.key, row.waiters[0].waiters, row.depth + 1)
        rows = [
            BlockingRow(("thread", waiter.tid), row.depth + 1, waiters=(waiter,))
            for waiter in row.waiters[:MAX_INSIDE]
        ]
        left_out = len(row.waiters) - len(rows)
        if left_out:
            rows.append(BlockingRow(("more", *row.key), row.depth + 1, left_out=left_out))
        return rows[::-1]

    def below(
        self, parent: tuple[Hashable, ...], tids: Sequence[int], depth: int
    ) -> list[BlockingRow]:
        """Return the rows of some threads with one parent."""
        fans: dict[tuple[int, str], list[BlockingWaiter]] = {}
        single: list[BlockingWaiter] = []
        for tid in tids:
            waiter = self._tree.waiters[tid]
            if waiter.waiters or tid in self._tree.roots[waiter.root].tids:
                single.append(waiter)
            else:
                fans.setdefault((waiter.lock, family(self._name(tid))), []).append(waiter)
        entries: list[tuple[float, BlockingRow]] = []
        for (lock, name), waiters in fans.items():
            if len(waiters) < _MIN_OF_A_FAN:
                single += waiters
                continue
            key = (_FAN, parent, lock, name)
            named = common_name([self._name(waiter.tid) for waiter in waiters])
            row = BlockingRow(
                key, depth, waiters=tuple(waiters), name=named, is_open=self._is_open(key)
            )
            entries.append((sum([self._waited_s(waiter) for waiter in waiters]), row))
        for waiter in single:
            thread_key = ("thread", waiter.tid)
            opened = self._is_open(thread_key) if waiter.waiters else None
            row = BlockingRow(thread_key, depth, waiters=(waiter,), is_open=opened)
            entries.append((self._waited_s(waiter), row))
        entries.sort(key=lambda entry: (entry[0], -entry[1].waiters[0].tid))
        return [row for _, row in entries]

    def _name(self, tid: int) -> str:
        return self._threads[tid].name

    def _waited_s(self, waiter: BlockingWaiter) -> float:
        """Return the seconds of the present waits of a thread and of all behind the thread."""
        wait = self._threads[waiter.tid].waiting_for
        return waiter.behind.waited_s + (wait.duration_s if wait is not None else 0.0)


def behind_words(behind: Behind) -> str:
    """Return what is behind something: "9 threads wait behind this, 8.4 s each second"."""
    verb = "waits" if behind.threads == 1 else "wait"
    threads = counted(behind.threads, "thread")
    return f"{threads} {verb} behind this, {duration(behind.wait)} each second"


def also_words(others: Sequence[str]) -> str:
    """Return the further holders of a lock: "also held by a, b and 6 more", "" for none.

    Args:
        others: their names.
    """
    if not others:
        return ""
    if len(others) <= 3:
        return f"also held by {', '.join(others)}"
    return f"also held by {', '.join(others[:2])} and {len(others) - 2} more"


def activity_of(
    root: BlockingRoot, locks: Mapping[int, Lock], threads: Mapping[int, Thread]
) -> ThreadActivity | None:
    """Return what the holder at a root does now, None if that is not known.

    Args:
        root: the root.
        locks: the locks by id.
        threads: the threads by tid.
    """
    if root.kind is not RootKind.HOLDER:
        return None
    (tid,) = root.tids
    for id_ in root.locks:
        now = locks[id_].holder_activity if id_ in locks else None
        if now is not None and now.tid == tid:
            return now
    return threads[tid].now if tid in threads else None
