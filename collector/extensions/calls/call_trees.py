"""Copies the trees of function calls out of the shared memory, and checks them.

The target counts on while a tree is copied. The open calls are copied before and after the nodes. A
call that both copies have was open all the time, so no node has its time yet. If a call of some
length ended in between, the tree is copied again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from locktop.collector.native import Record, ffi, lib, offset_of
from locktop.collector.shm import layout
from locktop.collector.shm.segment import GrowingArray, SharedMemory

_ATTEMPTS = 5
#: A share of a call's time that may be missing.
_HARMLESS_SHARE = 0.001
_NODES_AT = offset_of("struct lt_calls", "nodes")
_CALLS_AT = offset_of("struct lt_thread", "calls")
_ENDED_AT = offset_of("struct lt_header", "calls_ended")


class CallsHead(NamedTuple):
    """The scalars of struct lt_calls."""

    depth: int
    depth_room: int
    frames: int
    last: int
    too_deep: int
    left_out: int
    unmatched: int
    control: int
    epoch: int


class RawCall(NamedTuple):
    """struct lt_call. Times are ticks."""

    function: int
    parent: int
    index: int  # type: ignore[assignment]
    count: int  # type: ignore[assignment]
    ticks: int
    callee_ticks: int
    wait_ticks: int
    short_count: int


class OpenCall(NamedTuple):
    """struct lt_call_frame. Times are ticks."""

    begin: int
    callee_ticks: int
    waited: int
    index: int  # type: ignore[assignment]


class _Owner(NamedTuple):
    """The fields of struct lt_thread that belong to its calls."""

    calls: int
    waited: int


_HEAD = Record(CallsHead, "struct lt_calls")
_NODE = Record(RawCall, "struct lt_call")
_FRAME = Record(OpenCall, "struct lt_call_frame")
_OWNER = Record(_Owner, "struct lt_thread")
_NODE_SIZE: int = ffi.sizeof("struct lt_call")


class RawCallTree(NamedTuple):
    """One tree, as of the reading ``now`` of the target's clock."""

    head: CallsHead
    nodes: list[RawCall]  # the first one is the root, which is no function
    open: list[OpenCall]  # the outermost first, without the root
    now: int
    waited: int = 0  # lt_thread.waited


class CallTrees:
    """The trees of one file. A tree that did not change is not copied again."""

    def __init__(self, memory: SharedMemory, now: Callable[[], int]) -> None:
        """``now`` returns the present reading of the target's clock, ticks."""
        self._memory = memory
        self._now = now
        self._trees_by_offset: dict[int, RawCallTree] = {}
        self._owners: dict[int, int] = {}  # the block of each tree, by the tree's offset

    def forget(self) -> None:
        """Copy all trees again: dlclose() has flagged functions."""
        self._trees_by_offset.clear()

    def thread_tree(self, block: int) -> RawCallTree | None:
        """Return the tree of the thread whose block is at the offset ``block``; None: it has none.

        Raises:
            LocktopError: the file is damaged.
        """
        data = self._memory.read(block, _OWNER.size)
        owner = _OWNER.unpack(data)
        if self._owners.setdefault(owner.calls, block) != block and owner.calls:
            raise self._memory.broken("two threads have the same call tree")
        tree = self._tree(owner.calls, lib.LT_CALLS_NODES) if owner.calls else None
        return tree._replace(waited=owner.waited) if tree is not None else None

    def ended_tree(self) -> RawCallTree | None:
        """Return the tree of all threads that have ended; None: there is none.

        Raises:
            LocktopError: the file is damaged.
        """
        head_at = int.from_bytes(self._memory.read(_ENDED_AT, 8), layout.BYTE_ORDER)
        return self._tree(head_at, lib.LT_CALLS_NODES_ENDED) if head_at else None

    def _tree(self, head_at: int, max_nodes: int) -> RawCallTree | None:
        for attempt in range(_ATTEMPTS):
            seq = self._memory.retire_seq()
            tree = self._copy(head_at, max_nodes, attempt == _ATTEMPTS - 1)
            if tree is not None and not seq & 1 and self._memory.retire_seq() == seq:
                self._trees_by_offset[head_at] = tree
                return tree
        return tree

    def _copy(self, head_at: int, max_nodes: int, final: bool) -> RawCallTree | None:
        """Return the tree; None if a call ended meanwhile whose time would be missing.

        A ``final`` copy is returned as it is.
        """
        head, before = self._frames(head_at)
        former = self._trees_by_offset.get(head_at)
        if former is not None and former.head == head:
            return former._replace(now=max(self._now(), head.last))
        array = GrowingArray(self._memory, head_at + _NODES_AT, _NODE_SIZE)
        array.refresh()
        if array.count > max_nodes:
            raise self._memory.broken(f"{array.count} nodes in a call tree")
        begun = self._now()
        nodes = _NODE.each(array.copy())
        _, after = self._frames(head_at)
        now = max(self._now(), head.last)
        still_open = 0
        for call, other in zip(before, after, strict=False):
            if call.begin != other.begin or call.index != other.index:
                break
            still_open += 1
        if still_open < len(before) and not final:
            longest = now - before[still_open].begin
            traced = now - before[0].begin + sum(node.ticks for node in nodes if not node.parent)
            if longest > max(2 * (now - begun), traced * _HARMLESS_SHARE):
                return None
        return RawCallTree(head, nodes, after[:still_open], now)

    def _frames(self, head_at: int) -> tuple[CallsHead, list[OpenCall]]:
        head = _HEAD.unpack(self._memory.read(head_at, _HEAD.size))
        depth = min(head.depth, head.depth_room, lib.LT_CALLS_DEPTH_MAX + 1)
        if depth <= 1 or not head.frames:
            return head, []
        data = self._memory.read(head.frames, depth * _FRAME.size)
        return head, _FRAME.each(data)[1:]
