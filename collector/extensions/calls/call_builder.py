"""Builds the call trees of a snapshot from the trees in the shared memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.calls.call_trees import CallTrees, RawCallTree
from locktop.collector.extensions.calls.model import CallNode, CallTree
from locktop.collector.extensions.calls.switch import counts
from locktop.collector.model import Thread
from locktop.collector.native import lib
from locktop.collector.shm import kinds
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.reader import RawThread

ENDED = "ended threads"
#: msgpack writes no larger number. Damaged counts may add up to more.
_MAX_COUNT = (1 << 64) - 1
_END_OF_ADDRESSES = 1 << 64


class CallBuilder:
    """The call trees of one file."""

    def __init__(self, trees: CallTrees, clock: Clock, stack_of: Callable[[int], int]) -> None:
        """``stack_of`` returns the id of a stack with one return address."""
        self._trees = trees
        self._clock = clock
        self._stack_of = stack_of

    def forget(self) -> None:
        """Read all trees again: a library was unloaded."""
        self._trees.forget()

    def build(
        self, threads: Iterable[RawThread], living: Mapping[int, Thread], control: int
    ) -> tuple[CallTree, ...]:
        """Return the trees of the living threads, then one of all ended threads.

        Args:
            threads: the blocks of the scan.
            living: the threads that the kernel knows, by tid.
            control: the present lt_control.calls.
        """
        trees, ended = [], []
        for raw in threads:
            thread = living.get(raw.block.tid)
            tree = self._read(self._trees.thread_tree, raw.offset)
            if tree is None:
                continue
            is_counting = thread is not None and tree.head.control == control
            is_counting = is_counting and counts(control)
            call_tree = self._tree(tree, raw if is_counting else None)
            if thread is None:
                ended.append(call_tree)
            else:
                trees.append(_name_tree(call_tree, thread))
        tree = self._read(lambda _: self._trees.ended_tree(), 0)
        if tree is not None:
            ended.append(self._tree(tree, None))
        trees.sort(key=lambda tree_: tree_.tid)
        return (*trees, *_merge_trees(ended))

    def _read(self, read: Callable[[int], RawCallTree | None], offset: int) -> RawCallTree | None:
        try:
            return read(offset)
        except LocktopError:
            return None  # a damaged tree is left out, and the rest of the scan goes on

    def _tree(self, tree: RawCallTree, running: RawThread | None) -> CallTree:
        """Return a tree with the calls that go on.

        Args:
            tree: the tree.
            running: the thread; None: its open calls ended with its last counted call.
        """
        ticks = [node.ticks for node in tree.nodes]
        callees = [node.callee_ticks for node in tree.nodes]
        waits = [node.wait_ticks for node in tree.nodes]
        end = tree.now if running is not None else tree.head.last
        waited = tree.waited + (_present_wait(running, end) if running is not None else 0)
        active = set()
        inner = 0  # ticks of the next inner call
        for call in reversed(tree.open):
            elapsed = max(end - call.begin, 0)
            if not 0 < call.index < len(ticks):
                continue
            ticks[call.index] += elapsed
            callees[call.index] += min(call.callee_ticks + inner, elapsed)
            waits[call.index] += min(max(waited - call.waited, 0), elapsed)
            active.add(call.index)
            inner = elapsed
        seconds = self._clock.seconds
        nodes: list[CallNode] = []
        index_of: dict[int, int | None] = {0: None}
        for index, node in enumerate(tree.nodes):
            if not index or not node.function or node.parent >= index:
                continue
            if node.function + 1 >= _END_OF_ADDRESSES:
                continue  # damaged
            if node.parent not in index_of:
                continue  # damaged, or its caller is
            index_of[index] = len(nodes)
            nodes.append(
                CallNode(
                    parent=index_of[node.parent],
                    function=self._stack_of(node.function + 1),
                    count=node.count,
                    total_s=seconds(ticks[index]),
                    own_s=seconds(max(ticks[index] - callees[index], 0)),
                    wait_s=seconds(waits[index]),
                    short_count=node.short_count,
                    active=running is not None and index in active,
                )
            )
        return CallTree(
            tid=0,
            name=ENDED,
            nodes=tuple(nodes),
            traced_s=_traced_seconds(nodes),
            too_deep=tree.head.too_deep,
            left_out=tree.head.left_out,
            unmatched=tree.head.unmatched,
        )


def _present_wait(thread: RawThread, now: int) -> int:
    """Return the ticks of the wait for a lock that goes on."""
    wait = thread.wait
    if wait is None or wait.key >> lib.LT_KIND_SHIFT not in kinds.CONTENDING:
        return 0
    return max(now - wait.since, 0)


def _sum(counts: Iterable[int]) -> int:
    """Return a sum that a snapshot can hold, also of damaged counts."""
    return min(sum(counts), _MAX_COUNT)


def _traced_seconds(nodes: Iterable[CallNode]) -> float:
    return sum(node.total_s for node in nodes if node.parent is None)


def _name_tree(tree: CallTree, thread: Thread) -> CallTree:
    return CallTree(
        tid=thread.tid,
        name=thread.name,
        nodes=tree.nodes,
        traced_s=tree.traced_s,
        too_deep=tree.too_deep,
        left_out=tree.left_out,
        unmatched=tree.unmatched,
    )


def _merge_trees(trees: list[CallTree]) -> tuple[CallTree, ...]:
    """Return one tree of several, none if there are none."""
    if len(trees) < 2:
        return tuple(trees)
    index_of: dict[tuple[int | None, int], int] = {}
    sums: list[list[CallNode]] = []
    parents: list[int | None] = []
    for tree in trees:
        indexes: list[int] = []
        for node in tree.nodes:
            parent = indexes[node.parent] if node.parent is not None else None
            index = index_of.setdefault((parent, node.function), len(sums))
            if index == len(sums):
                sums.append([])
                parents.append(parent)
            sums[index].append(node)
            indexes.append(index)
    nodes = tuple(
        CallNode(
            parent=parent,
            function=same[0].function,
            count=_sum(node.count for node in same),
            total_s=sum(node.total_s for node in same),
            own_s=sum(node.own_s for node in same),
            wait_s=sum(node.wait_s for node in same),
            short_count=_sum(node.short_count for node in same),
        )
        for parent, same in zip(parents, sums, strict=True)
    )
    return (
        CallTree(
            tid=0,
            name=ENDED,
            nodes=nodes,
            traced_s=_traced_seconds(nodes),
            too_deep=_sum(tree.too_deep for tree in trees),
            left_out=_sum(tree.left_out for tree in trees),
            unmatched=_sum(tree.unmatched for tree in trees),
        ),
    )
