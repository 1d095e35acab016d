"""The call trees of a snapshot, made of raw trees with calls that go on."""

from __future__ import annotations

from typing import cast

import msgspec
import pytest

from locktop.collector.extensions.calls.call_builder import ENDED, CallBuilder
from locktop.collector.extensions.calls.call_trees import (
    CallsHead,
    CallTrees,
    OpenCall,
    RawCall,
    RawCallTree,
)
from locktop.collector.extensions.calls.model import CallTree
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.reader import RawThread

ON, OFF = 257, 512
SECOND = 1_000


class Seconds:
    """A clock of a thousand ticks a second."""

    def seconds(self, ticks: int) -> float:
        return ticks / SECOND


class Trees:
    """The trees by offset; 0 has that of the ended threads."""

    def __init__(self, **trees: RawCallTree) -> None:
        self.trees = trees

    def thread_tree(self, block: int) -> RawCallTree | None:
        return self.trees.get(f"at_{block}")

    def ended_tree(self) -> RawCallTree | None:
        return self.trees.get("ended")


class Block:
    def __init__(self, tid: int) -> None:
        self.tid = tid


class Raw:
    """The fields of a RawThread that matter here."""

    def __init__(self, offset: int, tid: int) -> None:
        self.offset, self.block, self.wait = offset, Block(tid), None


class Named:
    def __init__(self, tid: int) -> None:
        self.tid, self.name = tid, f"thread {tid}"


def raw_tree(
    nodes: list[RawCall], opened: list[OpenCall] | None = None, control: int = ON, last: int = 5_000
) -> RawCallTree:
    head = CallsHead(1 + len(opened or []), 32, 8, last, 1, 2, 3, control, 1)
    root = RawCall(0, 0, 0, 0, 0, 0, 0, 0)
    return RawCallTree(head, [root, *nodes], opened or [], 10_000)


def node(index: int, parent: int, ticks: int = 0, callees: int = 0, function: int = 0) -> RawCall:
    return RawCall(function or 100 * index, parent, index, 1, ticks, callees, 0, 0)


def build(living: tuple[int, ...], control: int, **trees: RawCallTree) -> tuple[CallTree, ...]:
    builder = CallBuilder(cast(CallTrees, Trees(**trees)), cast(Clock, Seconds()), lambda at: at)
    threads = [
        cast(RawThread, Raw(int(name[3:]), int(name[3:]))) for name in trees if name[:3] == "at_"
    ]
    return builder.build(threads, {tid: Named(tid) for tid in living}, control)  # type: ignore[misc]


def test_calls_that_go_on_have_their_time_until_now() -> None:
    tree = raw_tree(
        [node(1, 0), node(2, 1, ticks=3_000), node(3, 2)],
        [OpenCall(1_000, 3_000, 0, 1), OpenCall(6_000, 0, 0, 2), OpenCall(9_000, 0, 0, 3)],
    )
    (found,) = build((7,), ON, at_7=tree)
    assert (found.tid, found.name) == (7, "thread 7")
    assert [one.total_s for one in found.nodes] == [9.0, 7.0, 1.0]
    assert [one.own_s for one in found.nodes] == [2.0, 6.0, 1.0]
    assert [one.active for one in found.nodes] == [True, True, True]
    assert found.traced_s == sum(one.own_s for one in found.nodes) == 9.0
    assert [one.function for one in found.nodes] == [101, 201, 301]


@pytest.mark.parametrize("control", [OFF, ON + 512])
def test_open_calls_end_with_the_last_counted_one_when_nothing_counts(control: int) -> None:
    tree = raw_tree([node(1, 0)], [OpenCall(1_000, 0, 0, 1)], last=5_000)
    (found,) = build((7,), control, at_7=tree)
    assert found.traced_s == 4.0
    assert not found.nodes[0].active


def test_trees_of_threads_that_are_gone_are_added_to_the_ended_ones() -> None:
    gone = raw_tree([node(1, 0, 2_000, 500), node(2, 1, 500)])
    ended = raw_tree([node(1, 0, 1_000, function=200), node(2, 0, 3_000, 0, function=100)])
    (found,) = build((), ON, at_7=gone, ended=ended)
    assert (found.tid, found.name) == (0, ENDED)
    figures = [(one.parent, one.function, one.count, one.total_s, one.own_s) for one in found.nodes]
    assert figures == [(None, 101, 2, 5.0, 4.5), (0, 201, 1, 0.5, 0.5), (None, 201, 1, 1.0, 1.0)]
    assert (found.traced_s, found.too_deep, found.left_out, found.unmatched) == (6.0, 2, 4, 6)


def test_damaged_nodes_are_left_out() -> None:
    tree = raw_tree([node(1, 0, 10), node(2, 9, 10), node(3, 2, 10), node(4, 4, 10), node(5, 1, 5)])
    (found,) = build((7,), ON, at_7=tree)
    assert [(one.function, one.parent) for one in found.nodes] == [(101, None), (501, 0)]


def test_damaged_counts_and_addresses_can_be_written() -> None:
    largest = (1 << 64) - 1
    head = raw_tree([]).head._replace(too_deep=largest, left_out=largest, unmatched=largest)
    full = RawCall(100, 0, 1, largest, largest, largest, largest, largest)
    beyond = full._replace(function=largest, index=2)
    tree = raw_tree([full, beyond])._replace(head=head)
    (found,) = build((), ON, at_7=tree, at_8=tree, ended=tree)
    assert [node.function for node in found.nodes] == [101]
    assert found.nodes[0].count == found.left_out == largest
    assert msgspec.msgpack.encode(found)
    assert msgspec.json.encode(found)
