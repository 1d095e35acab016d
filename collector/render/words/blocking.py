"""The blocking tree as rows, and its sentences: the text report and the screen say the same."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

from msgspec import Struct

from locktop.collector.analysis.thread_groups import common_name, family
from locktop.collector.model import (
    Behind,
    BlockingRoot,
    BlockingTree,
    BlockingWaiter,
    Lock,
    RootKind,
    Thread,
    ThreadActivity,
)
from locktop.collector.render.words.units import counted

#: Fewer threads that wait alike have rows of their own.
_MIN_OF_A_FAN = 3
#: An open fan shows no more threads.
MAX_INSIDE = 50
_FAN = "fan"


class BlockingRow(Struct, frozen=True):
    """A root, a thread that waits, or a fan: threads that wait alike and block nobody."""

    #: The same from one scan to the next: ("thread", tid), ("lock", id), ("cycle", tid), a fan.
    key: tuple[Hashable, ...]
    depth: int  # 0: a root
    root: BlockingRoot | None = None
    waiters: tuple[BlockingWaiter, ...] = ()  # one thread; of a fan the longest wait first
    name: str = ""  # of a fan: the common name of its threads
    is_open: bool | None = None  # None: nothing is below the row
    left_out: int = 0  # the row only says that so many threads of a fan have no rows


def is_open_at_first(key: tuple[Hashable, ...]) -> bool:
    """Return whether a row is open until the user closes it: all but fans."""
    return key[0] != _FAN


def rows(
    tree: BlockingTree,
    threads: Mapping[int, Thread],
    is_open: Callable[[tuple[Hashable, ...]], bool] = is_open_at_first,
) -> Iterator[BlockingRow]:
    """Yield the rows of the open parts of the tree, from the top.

    Args:
        tree: the tree.
        threads: the threads by tid.
        is_open: returns whether the row of a key is open.
    """
    layout = _Layout(tree, threads, is_open)
    for root in tree.roots:
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
    """Return how much waits behind something: "299 threads, 84,000 ms/s behind this"."""
    return f"{counted(behind.threads, 'thread')}, {1000 * behind.wait:,.0f} ms/s behind this"


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
